"""What a server keeps of the writes that callers have named."""

import pytest
from starlette.responses import Response

from omnigraph.core.errors import BadRequest
from omnigraph.server.sent_writes import ANSWER_BYTES_MAX, SentWrites, WriteName, WriteState

NAME = WriteName("act-mira", "atlas", "0123456789abcdef")


def test_a_write_that_had_no_effect_may_be_sent_again_under_its_name() -> None:
    writes = SentWrites()
    writes.begin(NAME)
    writes.answered(NAME, Response(b"{}", 409), had_no_effect=True)

    writes.begin(NAME)

    known = writes.find(NAME)
    assert known is not None
    assert known.state is WriteState.UNDER_WAY


@pytest.mark.parametrize("status", [200, 409, 503])
def test_a_write_that_may_have_landed_is_not_carried_out_again(status: int) -> None:
    writes = SentWrites()
    writes.begin(NAME)
    with pytest.raises(BadRequest, match="was sent before"):
        writes.begin(NAME)
    writes.answered(NAME, Response(b"{}", status))

    with pytest.raises(BadRequest, match="was sent before"):
        writes.begin(NAME)


def test_a_write_that_never_began_may_be_sent_again() -> None:
    writes = SentWrites()
    ended = writes.begin(NAME)

    ended()

    known = writes.find(NAME)
    assert known is not None
    assert known.state is WriteState.NOT_BEGUN
    writes.begin(NAME)


def test_the_end_of_a_write_does_not_replace_its_answer() -> None:
    writes = SentWrites()
    ended = writes.begin(NAME)
    writes.answered(NAME, Response(b"{}", 200))

    ended()

    known = writes.find(NAME)
    assert known is not None
    assert (known.state, known.status, known.content) == (WriteState.DONE, 200, b"{}")


def test_what_is_kept_is_bounded() -> None:
    writes = SentWrites(kept_max=2)
    names = [WriteName(None, "atlas", f"{number:016}") for number in range(3)]
    for name in names:
        writes.begin(name)
        writes.answered(name, Response(b"x" * (ANSWER_BYTES_MAX + 1), 200))

    kept = [writes.find(name) for name in names]
    assert kept[0] is None
    assert [(known.status, known.content) for known in kept[1:] if known is not None] == [(200, None)] * 2


def test_a_write_that_is_under_way_keeps_its_name_however_many_come_behind_it() -> None:
    writes = SentWrites(kept_max=3)
    writes.begin(NAME)
    for number in range(10):
        other = WriteName(None, "atlas", f"{number:016}")
        writes.begin(other)
        writes.answered(other, Response(b"{}", 400), had_no_effect=True)

    with pytest.raises(BadRequest, match="was sent before"):
        writes.begin(NAME)
    kept = [writes.find(WriteName(None, "atlas", f"{number:016}")) for number in range(10)]
    assert [known is not None for known in kept] == [False] * 8 + [True] * 2
