"""Set checks: what the rows of a write may contain together, and together with the committed ones.

Each check is written once, over `KeyQuestions`: it knows which questions a schema asks, what the answers
break, and how to say so. It never sees more rows than a log keeps.

S1  A pair of duplicates is charged to the later row, an exceeded maximum to the first row beyond it.
S2  A retained edge to a removed node and a minimum no longer met have no row: they are charged to the table,
    with the id of the edge, or of the source.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.validate.columns import Column
from omnigraph.validate.questions import COUNT, FILE, HOLDER, ID, LINE, FoundRows, KeyQuestions
from omnigraph.validate.values import quote, show
from omnigraph.validate.violations import (
    NOWHERE,
    Consequence,
    KeyConflictViolation,
    Violation,
    ViolationKind,
    ViolationLog,
)

ID_CONSTRAINT = -1  # the id of a strict insert comes before the declared columns
Message = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class TableTraits:
    """How a write treats one table.

    A strict insert replaces nothing. Fresh ids were made for this write: no other row has them.
    """

    is_strict: bool
    is_overwrite: bool
    has_fresh_ids: bool


def check_sets(
    traits: Mapping[str, TableTraits], catalog: Catalog, ask: KeyQuestions, log: ViolationLog
) -> None:
    """Report everything that the tables of a write break together, and together with committed rows."""
    check_keys(traits, catalog, ask, log)
    check_endpoints(traits, catalog, ask, log)
    check_cardinality(traits, catalog, ask, log)


def check_keys(
    traits: Mapping[str, TableTraits], catalog: Catalog, ask: KeyQuestions, log: ViolationLog
) -> None:
    """Report ids of strict inserts, and tuples of `@key` and `@unique`, that another row holds (S1)."""
    for table_key in sorted(traits):
        type_ = catalog.type_of(table_key)
        _check_strict_ids(type_, traits[table_key], ask, log)
        _check_unique(type_, traits[table_key], ask, log)


def check_endpoints(
    traits: Mapping[str, TableTraits], catalog: Catalog, ask: KeyQuestions, log: ViolationLog
) -> None:
    """Report written and retained edges with an end that does not exist after the write (S2)."""
    for edge in catalog.edges.values():
        own = traits.get(edge.table_key)
        if own is None or not own.is_overwrite:
            _charge_ends(edge, ask.retained(edge), log, is_nowhere=True)
        if own is not None:
            _charge_ends(edge, ask.missing(edge, log.refused), log)
            if any(log.refused.get(f"node:{node}") for _, node in ends(edge)):
                _charge_following(edge, ask.following(edge, log.refused), log)


def check_cardinality(
    traits: Mapping[str, TableTraits], catalog: Catalog, ask: KeyQuestions, log: ViolationLog
) -> None:
    """Report sources with more edges than the maximum or fewer than the minimum after the write (S1, S2)."""
    for edge in catalog.edges.values():
        if edge.table_key in traits and (edge.low > 0 or edge.high is not None):
            _check_counts(edge, ask, log)


def ends(edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the columns of both ends with the node type that they name."""
    return ("src", edge.source), ("dst", edge.target)


def _check_strict_ids(
    type_: NodeType | EdgeType, traits: TableTraits, ask: KeyQuestions, log: ViolationLog
) -> None:
    if not traits.is_strict or traits.has_fresh_ids:
        return
    table_key = type_.table_key
    answers = [(ask.duplicates(table_key, [ID]), "gets id {} twice")]
    if not traits.is_overwrite:
        answers.append((ask.existing(table_key, [ID]), "already has id {}"))
    for found, text in answers:
        _charge(
            found,
            table_key,
            log,
            kind=ViolationKind.UNIQUE,
            message=_id_message(found, f"{table_key} {text}"),
            constraint=ID_CONSTRAINT,
            violation=KeyConflictViolation,
        )


def _id_message(found: FoundRows, text: str) -> Message:
    return lambda row: text.format(quote(found.rows[ID][row]))


def _check_unique(
    type_: NodeType | EdgeType, traits: TableTraits, ask: KeyQuestions, log: ViolationLog
) -> None:
    key = type_.key if isinstance(type_, NodeType) else None
    if key is not None and not traits.is_strict:
        # Equal keys have equal ids, and a committed row with the same key is the one that is replaced.
        _charge_values(type_, key, ask.duplicates(type_.table_key, [ID], key), 0, log)
    for constraint, columns in enumerate(type_.unique, 1):
        _charge_values(type_, columns, ask.duplicates(type_.table_key, columns), constraint, log)
        _charge_values(type_, columns, ask.existing(type_.table_key, columns), constraint, log)


def _charge_values(
    type_: NodeType | EdgeType, columns: Sequence[str], found: FoundRows, constraint: int, log: ViolationLog
) -> None:
    """Report values that a committed row holds, where the answer names holders, or that appear twice."""
    named = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    holders = found.rows[HOLDER] if HOLDER in found.rows.column_names else None

    def message(row: int) -> str:
        shown = ", ".join(quote(show(found.rows[name][row])) for name in columns)
        why = "appears twice in this write" if holders is None else f"is held by {quote(holders[row])}"
        return f"@unique violation on {type_.name}.{named}: {shown} {why}"

    _charge(found, type_.table_key, log, kind=ViolationKind.UNIQUE, message=message, constraint=constraint)


def _charge_ends(
    edge: EdgeType, answers: tuple[FoundRows, FoundRows], log: ViolationLog, *, is_nowhere: bool = False
) -> None:
    for constraint, ((column, node), found) in enumerate(zip(ends(edge), answers, strict=True)):
        _charge(
            found,
            edge.table_key,
            log,
            kind=ViolationKind.ENDPOINT,
            message=_Missing(column, node, found),
            constraint=constraint,
            is_nowhere=is_nowhere,
        )


def _charge_following(edge: EdgeType, answers: tuple[FoundRows, FoundRows], log: ViolationLog) -> None:
    """Report edges whose end was refused: they are valid themselves, and come after what must be fixed."""
    for constraint, ((column, node), found) in enumerate(zip(ends(edge), answers, strict=True)):
        if found.total:
            rows = found.rows.to_pylist()
            consequences = [
                Consequence(
                    ViolationKind.ENDPOINT,
                    f"{column} {quote(row[column])} was refused",
                    edge.table_key,
                    row[ID],
                    row[FILE],
                    row[LINE],
                    log.file_name(row[FILE]),
                    constraint,
                    cause=(f"node:{node}", row[column]),
                )
                for row in rows
            ]
            log.extend_consequences(consequences, total=found.total)


@dataclass(frozen=True, slots=True)
class _Missing:
    """The message about the end of an edge, by its position in the answer."""

    column: str
    node: str
    found: FoundRows

    def __call__(self, row: int) -> str:
        return f"{self.column} {quote(self.found.rows[self.column][row])} not found in {self.node}"


def _check_counts(edge: EdgeType, ask: KeyQuestions, log: ViolationLog) -> None:
    beyond, below = ask.counts(edge)
    where = f"@card violation on edge {edge.name}"

    def too_many(row: int) -> str:
        source, count = beyond.rows["src"][row], beyond.rows[COUNT][row].as_py()
        return f"{where}: {quote(source)} has {_edges(count)}, at most {edge.high} allowed"

    def too_few(row: int) -> str:
        source, count = below.rows[ID][row], below.rows[COUNT][row].as_py()
        return f"{where}: {quote(source)} has {_edges(count)}, at least {edge.low} required"

    _charge(beyond, edge.table_key, log, kind=ViolationKind.CARDINALITY, message=too_many)
    _charge(below, edge.table_key, log, kind=ViolationKind.CARDINALITY, message=too_few, is_nowhere=True)


def _edges(count: int) -> str:
    return f"{count} edge" if count == 1 else f"{count} edges"


def _charge(
    found: FoundRows,
    table_key: str,
    log: ViolationLog,
    *,
    kind: ViolationKind,
    message: Message,
    constraint: int = 0,
    violation: type[Violation] = Violation,
    is_nowhere: bool = False,
) -> None:
    """Report one violation for each row of an answer, at its place or without one (S2)."""
    if not found.total:
        return
    ids: list[str | None] = found.rows[ID].to_pylist()
    nowhere: list[int] = [NOWHERE] * len(ids)
    files: Column = nowhere if is_nowhere else found.rows[FILE].to_pylist()
    lines: Column = nowhere if is_nowhere else found.rows[LINE].to_pylist()
    charged = [
        violation(
            kind,
            message(row),
            table_key,
            id_,
            file,
            line,
            None if is_nowhere else log.file_name(file),
            constraint,
        )
        for row, (id_, file, line) in enumerate(zip(ids, files, lines, strict=True))
    ]
    log.extend(charged, more=found.total - len(charged))
