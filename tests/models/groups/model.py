"""What a graph of people should hold, by running operations one after the other over plain dictionaries."""

from copy import deepcopy
from dataclasses import dataclass, field

SCHEMA = """
node Person { name: String @key  age: I32?  mail: String? @unique }
edge Knows: Person -> Person @card(0..2)
"""


@dataclass(frozen=True)
class Insert:
    """One person, as a whole."""

    name: str
    age: int
    mail: str | None

    @property
    def text(self) -> str:
        mail = "" if self.mail is None else f', mail: "{self.mail}"'
        return f'insert Person {{ name: "{self.name}", age: {self.age}{mail} }}'


@dataclass(frozen=True)
class InsertFriends:
    """Two persons, and an edge between them, in one query."""

    first: str
    second: str

    @property
    def text(self) -> str:
        people = " ".join(f'insert Person {{ name: "{name}" }}' for name in (self.first, self.second))
        return f'{people} insert Knows {{ from: "{self.first}", to: "{self.second}" }}'


@dataclass(frozen=True)
class SetAge:
    """The age of everybody who has another one."""

    age: int
    to: int

    @property
    def text(self) -> str:
        return f"update Person set {{ age: {self.to} }} where age = {self.age}"


@dataclass(frozen=True)
class SetMail:
    """The mail of one person."""

    name: str
    mail: str

    @property
    def text(self) -> str:
        return f'update Person set {{ mail: "{self.mail}" }} where name = "{self.name}"'


@dataclass(frozen=True)
class Link:
    """One edge."""

    source: str
    target: str

    @property
    def text(self) -> str:
        return f'insert Knows {{ from: "{self.source}", to: "{self.target}" }}'


@dataclass(frozen=True)
class Remove:
    """One person, with its edges."""

    name: str

    @property
    def text(self) -> str:
        return f'delete Person where name = "{self.name}"'


Operation = Insert | InsertFriends | SetAge | SetMail | Link | Remove


class Refused(Exception):
    """The schema does not allow what an operation would make."""


@dataclass
class Model:
    """Persons by name with age and mail, and edges as often as they were made."""

    people: dict[str, tuple[int | None, str | None]] = field(default_factory=dict)
    knows: list[tuple[str, str]] = field(default_factory=list)

    def after(self, operation: Operation) -> tuple["Model", tuple[int, int]]:
        """Return the model with an operation done, and what that counts.

        Raises:
            Refused: a rule of the schema would be broken.
        """
        model = deepcopy(self)
        counts = model._do(operation)
        mails = [mail for _, mail in model.people.values() if mail is not None]
        if len(mails) != len(set(mails)):
            raise Refused("a mail twice")
        if any(end not in model.people for edge in model.knows for end in edge):
            raise Refused("an edge without an end")
        if any(sum(source == name for source, _ in model.knows) > 2 for name in model.people):
            raise Refused("too many edges")
        return model, counts

    def _do(self, operation: Operation) -> tuple[int, int]:
        match operation:
            case Insert(name, age, mail):
                self.people[name] = (age, mail)
                return 1, 0
            case InsertFriends(first, second):
                self.people[first] = self.people[second] = (None, None)
                self.knows.append((first, second))
                return 2, 1
            case SetAge(age, to):
                found = [name for name, (has, _) in self.people.items() if has == age]
                for name in found:
                    self.people[name] = (to, self.people[name][1])
                return len(found), 0
            case SetMail(name, mail):
                if name not in self.people:
                    return 0, 0
                self.people[name] = (self.people[name][0], mail)
                return 1, 0
            case Link(source, target):
                self.knows.append((source, target))
                return 0, 1
            case Remove(name):
                if self.people.pop(name, None) is None:
                    return 0, 0
                kept = [edge for edge in self.knows if name not in edge]
                gone = len(self.knows) - len(kept)
                self.knows = kept
                return 1, gone
