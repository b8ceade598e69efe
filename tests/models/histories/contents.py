"""What a graph should hold, as plain dictionaries: written from the specification, not from the engine."""

from dataclasses import dataclass, field, replace

SCHEMA = """\
node Person { handle: String @key  age: I64?  tag: String }
node Team   { name: String @key  size: I64? }
node Note   { body: String }
edge Knows:  Person -> Person { tag: String }
edge Joined: Person -> Team   { tag: String }
node Own0 { key: String @key  value: I64 }
node Own1 { key: String @key  value: I64 }
node Own2 { key: String @key  value: I64 }
node Own3 { key: String @key  value: I64 }
"""
OWN_TABLES = 4

Ends = tuple[str, str]


class Refused(Exception):
    """The specification refuses the operation: nothing changes."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything of the schema above. Notes are known by their bodies, edges by their tags: both unique."""

    people: dict[str, tuple[int | None, str]] = field(default_factory=dict)
    teams: dict[str, int | None] = field(default_factory=dict)
    notes: frozenset[str] = frozenset()
    knows: dict[str, Ends] = field(default_factory=dict)
    joined: dict[str, Ends] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)  # "<table>/<key>" to value

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        parts = (self.people, self.teams, self.notes, self.knows, self.joined, self.own)
        return sum(len(part) for part in parts)

    def without_people(self, gone: set[str]) -> "Contents":
        """Return the contents after people are deleted, their edges with them."""
        return replace(
            self,
            people={handle: row for handle, row in self.people.items() if handle not in gone},
            knows={tag: ends for tag, ends in self.knows.items() if not gone & set(ends)},
            joined={tag: ends for tag, ends in self.joined.items() if ends[0] not in gone},
        )

    def checked(self) -> "Contents":
        """Return the contents themselves, if every edge has its ends.

        Raises:
            Refused: an edge would dangle.
        """
        for source, target in self.knows.values():
            if source not in self.people or target not in self.people:
                raise Refused(f"Knows {source} {target}")
        for source, target in self.joined.values():
            if source not in self.people or target not in self.teams:
                raise Refused(f"Joined {source} {target}")
        return self


def difference(found: Contents, wanted: Contents) -> str:
    """Say briefly where two contents differ; empty if they do not."""
    parts = []
    for name in ("people", "teams", "knows", "joined", "own"):
        have: dict[str, object] = getattr(found, name)
        want: dict[str, object] = getattr(wanted, name)
        changed = [key for key in sorted(have.keys() | want.keys()) if have.get(key) != want.get(key)]
        parts += [f"{name}[{key}]: found {have.get(key)}, wanted {want.get(key)}" for key in changed]
    parts += [f"notes: found {body}" for body in sorted(found.notes - wanted.notes)]
    parts += [f"notes: missing {body}" for body in sorted(wanted.notes - found.notes)]
    shown = "; ".join(parts[:8])
    return f"{shown} … {len(parts)} differences" if len(parts) > 8 else shown
