"""Violations of the schema: their kinds, their one order, and the error that the first of them becomes.

V1  The order is total and does not depend on when or where a violation was found: two engines that find the
    same violations raise the same first one and list the same first hundred.
V2  `total` counts every violation, however many are kept, unless V4 ends the count.
V3  A row that is refused only because another row was refused comes after all others: what must be fixed
    comes first, and what follows from it is counted.
V4  An input with `COUNTED_MAX` violations of single rows is refused without more work: it is read no further,
    and nothing is asked about its rows together. The count is then the least there are, and says so. A log
    that is to keep them all has no such end.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.core.errors import KeyConflict, ValidationError

VIOLATIONS_MAX = 100  # what one error lists: beyond that, the input has a deeper problem
COUNTED_MAX = 10_000  # a tenth of a second of refusals; a body may be 16 million lines that are none
REFUSED_MAX = 1_000  # smallest ids of refused nodes, by table; edges to other nodes count as usual
NOWHERE = -1  # the file and line of a violation without its own row


class ViolationKind(StrEnum):
    """What is violated, in the order in which the violations of one row are reported."""

    RECORD = "record"
    REQUIRED = "required"
    TYPE = "type"
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    UNIQUE = "unique"
    ENDPOINT = "endpoint"
    CARDINALITY = "cardinality"


_RANKS = {kind: rank for rank, kind in enumerate(ViolationKind)}
ViolationOrder = tuple[bool, bool, int, int, str, str, int, int, str]


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken by one row.

    `file` is the position of the input among those given and `line` the line or row in it, counted from one;
    a mutation is file 0 and its statements are the lines. Both are `NOWHERE` for a violation without its own
    row: a retained edge to a removed node, a minimum no longer met. `constraint` is the declaration order
    within the kind.
    """

    kind: ViolationKind
    message: str
    table_key: str | None
    row_id: str | None
    file: int
    line: int
    file_name: str | None = None
    constraint: int = 0

    @property
    def sort_key(self) -> ViolationOrder:
        """The place in the one order: rows by file, line, id; then what has no row, by table (V1, V3)."""
        is_nowhere = self.file == NOWHERE
        return (
            isinstance(self, Consequence),
            is_nowhere,
            self.file,
            self.line,
            (self.table_key or "") if is_nowhere else "",
            self.row_id or "",
            _RANKS[self.kind],
            self.constraint,
            self.message,
        )

    def __lt__(self, other: "Violation") -> bool:
        return self.sort_key < other.sort_key


@dataclass(frozen=True, slots=True)
class KeyConflictViolation(Violation):
    """A strict insert met its id again, in the table or earlier in the input; ordered like `unique`.

    `constraint` is below every declared one: the id comes before the columns.
    """


@dataclass(frozen=True, slots=True)
class Consequence(Violation):
    """An edge to a node of the same write that was refused: `cause` is that node's table and id."""

    cause: tuple[str, str] = ("", "")


class ViolationLog:
    """Collects violations and keeps the first of them."""

    def __init__(self, limit: int = VIOLATIONS_MAX) -> None:
        """Take how many violations to keep."""
        assert limit > 0, "the first violation is always kept"
        self.limit = limit
        self.total = 0
        self.consequences = 0
        self.is_cut_short = False
        self._refused: dict[str, set[str]] = {}
        self._kept: list[Violation] = []
        self._horizon: tuple[int, int] | None = None  # the place of the last one kept, once the log is full
        self._file_names: dict[int, str | None] = {}

    def open_file(self, file: int, name: str | None) -> None:
        """Say that the input at this position has lines, and what it is called."""
        self._file_names[file] = name

    def file_name(self, file: int) -> str | None:
        """Return the name of an input."""
        return self._file_names.get(file)

    def add(self, violation: Violation) -> None:
        """Record one violation."""
        self.extend((violation,))

    @property
    def has_enough(self) -> bool:
        """Whether so much is wrong that looking for more helps nobody (V4)."""
        return self.total >= self.enough

    @property
    def enough(self) -> int:
        """How many violations of single rows end the search (V4)."""
        return max(COUNTED_MAX, self.limit)

    def cut_short(self) -> None:
        """Say that nothing more was looked for; what was found until then depends on the reader (V4)."""
        self.is_cut_short, self.total, self.consequences = True, COUNTED_MAX, 0

    @property
    def refused(self) -> Mapping[str, Collection[str]]:
        """The ids of nodes that were refused, by table; only the smallest if there are many."""
        return self._refused

    def refuse(self, table_key: str, ids: Iterable[str | None]) -> None:
        """Note that rows of a node type were refused: violations of edges to them follow from that (V3)."""
        if table_key.startswith("node:"):
            known = self._refused.setdefault(table_key, set())
            known.update(id_ for id_ in ids if id_ is not None)
            if len(known) > REFUSED_MAX:
                self._refused[table_key] = set(sorted(known)[:REFUSED_MAX])

    def extend_consequences(self, found: Iterable[Consequence], *, total: int) -> None:
        """Record what follows from refused rows; `found` has the first ones."""
        kept = tuple(found)
        self.consequences += total
        self.extend(kept, more=total - len(kept))

    def extend(self, violations: Iterable[Violation], *, more: int = 0) -> None:
        """Record violations; `more` of the same kind were found after the first `limit` (V2)."""
        before = len(self._kept)
        self._kept.extend(violations)
        self.total += len(self._kept) - before + more
        if len(self._kept) > 2 * self.limit:
            self._trim()

    def merge(self, other: "ViolationLog") -> None:
        """Record what another log recorded about other rows of the same input."""
        self._file_names |= other._file_names
        self.consequences += other.consequences
        for table_key, ids in other._refused.items():
            self.refuse(table_key, ids)
        kept = other.first_violations()
        self.extend(kept, more=other.total - len(kept))
        self.is_cut_short |= other.is_cut_short

    def take_names(self, other: "ViolationLog") -> None:
        """Take over the input names of another log, and nothing else."""
        self._file_names |= other._file_names

    def has_room(self, *, file: int, line: int) -> bool:
        """Return whether a violation at this place could still be among the first ones."""
        return self._horizon is None or (file, line) <= self._horizon

    def first_violations(self) -> tuple[Violation, ...]:
        """Return the first violations in order, at most `limit` of them (V1)."""
        self._trim()
        return tuple(self._kept)

    def raise_if_any(self) -> None:
        """Raise the first violation, if there is one.

        Raises:
            ValidationError: with the fields of the first violation and the list of the first ones.
            KeyConflict: when the first is one.
        """
        violations = self.first_violations()
        if not violations:
            return
        first = violations[0]
        has_lines = first.file in self._file_names
        if isinstance(first, KeyConflictViolation):
            assert first.table_key is not None, "a strict insert goes to a table"
            assert first.row_id is not None, "a key conflict is about an id"
            raise KeyConflict(
                table_key=first.table_key,
                row_id=first.row_id,
                file=first.file_name,
                line=first.line if has_lines else None,
            )
        raise ValidationError(
            self._place(first) + first.message,
            kind=first.kind,
            table_key=first.table_key,
            row_id=first.row_id,
            file=first.file_name if has_lines else None,
            line=first.line if has_lines else None,
            violations=violations,
            total=self.total,
            consequences=self.consequences,
            is_cut_short=self.is_cut_short,
        )

    def _place(self, violation: Violation) -> str:
        """Return the place of a violation, as a prefix; a mutation has no lines to point at."""
        if violation.file not in self._file_names:
            return ""
        name = violation.file_name
        return f"line {violation.line}: " if name is None else f"{name}:{violation.line}: "

    def _trim(self) -> None:
        self._kept.sort()
        del self._kept[self.limit :]
        last = self._kept[-1] if len(self._kept) == self.limit else None
        is_behind = last is None or last.file == NOWHERE or isinstance(last, Consequence)
        self._horizon = None if last is None or is_behind else (last.file, last.line)
