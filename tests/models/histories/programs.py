"""Random programs of writes, valid for the contents they are drawn for."""

import random
from collections.abc import Iterator, Sequence

from tests.models.histories.contents import Contents, Ends
from tests.models.histories.operations import (
    DropEdge,
    DropPeople,
    Load,
    Operation,
    PutKnows,
    PutNote,
    PutOwn,
    PutPerson,
    SetAge,
)

AGE_MAX = 100
PEOPLE_MAX = 400  # above this everybody beyond an age is deleted, so that a long run stays quick
BULK_ROWS = 1_200  # more than a small delta: such a merge takes the other form of the keyed write


class Program:
    """A source of operations; names are never used twice, so that every effect can be told from others."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._names = self._count()

    def next(self, contents: Contents) -> Operation:
        """Return an operation that the contents allow."""
        draw = self.random.random()
        if len(contents.people) > PEOPLE_MAX:
            return DropPeople(None, self.random.randrange(AGE_MAX // 2))
        if draw < 0.22:
            return self._put_person(contents)
        if draw < 0.30:
            return SetAge(self._known(contents.people), 0, self._age())
        if draw < 0.34:
            return SetAge(None, self.random.randrange(20), self._age())
        if draw < 0.42:
            return DropPeople(self._known(contents.people), 0)
        if draw < 0.45:
            return DropPeople(None, AGE_MAX - self.random.randrange(8))
        if draw < 0.55 and contents.people:
            return PutKnows(self._name("k"), self._ends(list(contents.people), list(contents.people)))
        if draw < 0.61:
            type_name, edges = self.random.choice([("Knows", contents.knows), ("Joined", contents.joined)])
            return DropEdge(type_name, self._known(edges))
        if draw < 0.67:
            return PutNote(self._name("n"))
        if draw < 0.72:
            return PutOwn(self.random.randrange(4), self._name("o"), self._age())
        return self.load(contents)

    def load(self, contents: Contents) -> Load:
        """Return a load in one of the three modes."""
        draw = self.random.random()
        if draw < 0.4:
            return self._additions(contents, "append")
        if draw < 0.75:
            return self._additions(contents, "merge")
        return self.overwrite(contents)

    def _additions(self, contents: Contents, mode: str) -> Load:
        people: dict[str, tuple[int | None, str]] = {
            self._name("p"): (self._age(), self._name("t")) for _ in range(self.random.randrange(4))
        }
        teams: dict[str, int | None] = {self._name("w"): self._age() for _ in range(self.random.randrange(2))}
        notes = tuple(self._name("n") for _ in range(self.random.randrange(3)))
        if mode == "merge":
            known = self._some(list(contents.people), 3)
            people |= {handle: (self._age(), self._name("t")) for handle in known}
            if self.random.random() < 0.04:
                people |= {self._name("b"): (self._age(), "bulk") for _ in range(BULK_ROWS)}
        who = [*contents.people, *people]
        where = [*contents.teams, *teams]
        knows = {self._name("L"): self._ends(who, who) for _ in range(self.random.randrange(3)) if who}
        joined = {self._name("L"): self._ends(who, where) for _ in range(2) if who and where}
        if mode == "merge":
            moved = self._some([tag for tag in contents.knows if tag.startswith("L")], 2)
            knows |= {tag: self._ends(who, who) for tag in moved}
        if not (people or teams or notes or knows or joined):
            notes = (self._name("n"),)
        is_append = mode == "append"
        return Load("append" if is_append else "merge", people, teams, notes, knows, joined)

    def overwrite(self, contents: Contents) -> Load:
        """Return a load that replaces all that some types have, and what is between them."""
        draw = self.random.random()
        people: dict[str, tuple[int | None, str]] = {}
        teams: dict[str, int | None] = {}
        knows: dict[str, Ends] = {}
        joined: dict[str, Ends] = {}
        if draw < 0.35:
            notes = tuple(self._name("n") for _ in range(self.random.randrange(4)))
            return Load("overwrite", people, teams, notes, knows, joined, ("Note",))
        if draw < 0.6:
            who = list(contents.people)
            knows = {self._name("L"): self._ends(who, who) for _ in range(3) if who}
            return Load("overwrite", people, teams, (), knows, joined, ("Knows",))
        teams = {self._name("w"): self._age() for _ in range(1 + self.random.randrange(3))}
        if draw < 0.8:
            joined = {
                self._name("L"): self._ends(list(contents.people), list(teams))
                for _ in range(3)
                if contents.people
            }
            return Load("overwrite", people, teams, (), knows, joined, ("Team", "Joined"))
        people = {self._name("p"): (self._age(), self._name("t")) for _ in range(5)}
        knows = {self._name("L"): self._ends(list(people), list(people)) for _ in range(3)}
        joined = {self._name("L"): self._ends(list(people), list(teams)) for _ in range(3)}
        types = ("Person", "Team", "Knows", "Joined")
        return Load("overwrite", people, teams, (), knows, joined, types)

    def _put_person(self, contents: Contents) -> PutPerson:
        is_known = contents.people and self.random.random() < 0.4
        handle = self._known(contents.people) if is_known else self._name("p")
        age = None if self.random.random() < 0.1 else self._age()
        if contents.people and self.random.random() < 0.5:
            friend = self._known(contents.people)
            return PutPerson(handle, age, self._name("t"), friend, self._name("k"))
        return PutPerson(handle, age, self._name("t"))

    def _age(self) -> int:
        return self.random.randrange(AGE_MAX)

    def _ends(self, sources: Sequence[str], targets: Sequence[str]) -> Ends:
        return self.random.choice(sources), self.random.choice(targets)

    def _known(self, names: dict[str, object] | dict[str, tuple[int | None, str]] | dict[str, Ends]) -> str:
        return self.random.choice(list(names)) if names else "nobody"

    def _some(self, names: list[str], count: int) -> list[str]:
        return self.random.sample(names, min(count, len(names)))

    def _name(self, prefix: str) -> str:
        return f"{prefix}{next(self._names)}"

    def _count(self) -> Iterator[int]:
        yield from range(1 << 62)
