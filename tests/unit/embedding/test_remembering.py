"""What a provider has answered is not asked of it again."""

from collections.abc import Sequence

from omnigraph.embedding.provider import Role
from omnigraph.embedding.remembering import RememberingProvider


class Counting:
    """A provider that notes what it was asked."""

    model = "m"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str], role: Role, dimension: int) -> list[list[float]]:
        self.asked.append(list(texts))
        return [[float(len(text)), *[0.0] * (dimension - 1)] for text in texts]

    def close(self) -> None:
        self.asked.append(["closed"])


def test_each_text_is_asked_for_once_in_each_role_and_dimension() -> None:
    asked = Counting()
    told: list[int] = []
    provider = RememberingProvider(asked, told=told.append)

    first = provider.embed(["a", "bb", "a"], "document", 2)
    second = provider.embed(["bb", "ccc"], "document", 2)
    provider.embed(["a"], "query", 2)
    provider.embed(["a"], "document", 3)
    provider.close()

    assert first == [[1, 0], [2, 0], [1, 0]]
    assert second == [[2, 0], [3, 0]]
    assert asked.asked == [["a", "bb"], ["ccc"], ["a"], ["a"], ["closed"]]
    assert told == [3, 2, 1, 1]


def test_what_there_is_no_memory_for_is_asked_again() -> None:
    asked = Counting()
    provider = RememberingProvider(asked, bytes_max=8)  # one vector of two numbers

    answers = [provider.embed(["a", "bb"], "document", 2) for _ in range(2)]

    assert answers[0] == answers[1] == [[1, 0], [2, 0]]
    assert asked.asked == [["a", "bb"], ["bb"]]
