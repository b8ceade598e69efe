"""Set checks against a brute force over Python dictionaries, on random writes to a small graph."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.validate.columns import TableChange
from omnigraph.validate.violations import Consequence, Violation, ViolationLog
from tests.support.library import compile_text
from tests.unit.validate.memory_view import MemoryView, change, rows_of, run

SMALL = compile_text("""\
node Person { key: String @key  mail: String? @unique  a: I32?  b: Bool?  kind: enum(x, y)?  @unique(a, b) }
node Place { name: String? @unique }
edge Lives: Person -> Place @card(1..2) { since: Date?  @unique(src, since) }
edge Owns: Person -> Place
edge Holds: Place -> Place @card(0..1)
""")
Row = dict[str, Any]
Found = tuple[bool, int, str, str, int, str]  # without a row, line, id, kind, constraint, table
TYPES: list[NodeType | EdgeType] = [*SMALL.nodes.values(), *SMALL.edges.values()]


@dataclass
class Write:
    """A random write to one table."""

    mode: str
    coalesce: bool
    rows: list[Row]
    removed: list[str]
    rest: list[Row] = field(default_factory=list)  # rows that pass the value checks
    folded: list[Row] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    @property
    def touched(self) -> set[str]:
        return {row["id"] for row in self.folded} | self.gone


SOME = st.sampled_from
PEOPLE, PLACES, EDGES = SOME("pqr"), SOME("uvw"), SOME("1234")


def row_of(type_: NodeType | EdgeType) -> st.SearchStrategy[Row]:
    def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.none() | values

    match type_.name:
        case "Person":
            return st.fixed_dictionaries(
                {
                    "key": PEOPLE,
                    "mail": optional(SOME("mn")),
                    "a": optional(SOME([1, 2])),
                    "b": optional(st.booleans()),
                    "kind": SOME([None, "x", "y", "x", "z"]),
                }
            ).map(lambda row: row | {"id": row["key"]})
        case "Place":
            return st.fixed_dictionaries({"id": PLACES, "name": optional(SOME("st"))})
        case "Lives":
            ends = {"id": EDGES, "src": PEOPLE, "dst": PLACES, "since": optional(SOME([1, 2]))}
            return st.fixed_dictionaries(ends)
        case "Owns":
            return st.fixed_dictionaries({"id": EDGES, "src": PEOPLE, "dst": PLACES})
        case _:
            return st.fixed_dictionaries({"id": EDGES, "src": PLACES, "dst": PLACES})


def by_id(rows: list[Row]) -> list[Row]:
    return list({row["id"]: row for row in rows}.values())


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[Row]]:
    def is_valid(row: Row) -> bool:
        return row.get("kind") != "z"

    return {
        type_.table_key: by_id(draw(st.lists(row_of(type_).filter(is_valid), max_size=4))) for type_ in TYPES
    }


@st.composite
def writes(draw: st.DrawFn) -> dict[str, Write]:
    found: dict[str, Write] = {}
    line = 0
    for type_ in draw(st.lists(SOME(TYPES), min_size=1, max_size=4, unique_by=lambda type_: type_.name)):
        mode = draw(SOME(["append", "merge", "merge", "overwrite", "delete"]))
        rows = [] if mode == "delete" else draw(st.lists(row_of(type_), max_size=5))
        for row in rows:
            line += 1
            row["line"] = line
        ids = PEOPLE if type_.name == "Person" else PLACES if type_.name == "Place" else EDGES
        removed = draw(st.lists(ids, max_size=2, unique=True)) if mode in {"merge", "delete"} else []
        found[type_.table_key] = Write(mode, draw(st.booleans()), rows, removed)
    return found


def last_of_each(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row is [other for other in rows if other["id"] == row["id"]][-1]]


def same(left: Row, right: Row, columns: tuple[str, ...]) -> bool:
    return all(left[name] is not None and left[name] == right[name] for name in columns)


def expected(graph: dict[str, list[Row]], given_writes: dict[str, Write]) -> list[Found]:
    """Return every violation of a write, by the words of the specification."""
    found: list[Found] = []
    for table_key, write in given_writes.items():
        rows = last_of_each(write.rows) if write.coalesce else write.rows
        wrong = [row for row in rows if row.get("kind") == "z"]
        found += [(False, row["line"], row["id"], "enum", 3, table_key) for row in wrong]
        write.rest = [row for row in rows if row.get("kind") != "z"]
        write.folded = last_of_each(write.rest)
        if write.mode == "overwrite":
            named = {row["id"] for row in write.rows}
            write.removed = [row["id"] for row in graph[table_key] if row["id"] not in named]
        write.gone = set(write.removed) - {row["id"] for row in write.folded}
    for type_ in TYPES:
        if type_.table_key in given_writes:
            found += unique_faults(type_, graph[type_.table_key], given_writes[type_.table_key])
    for edge in SMALL.edges.values():
        found += edge_faults(edge, graph, given_writes)
    return sorted(found)


def unique_faults(type_: NodeType | EdgeType, committed: list[Row], write: Write) -> list[Found]:
    found: list[Found] = []
    kept = [] if write.mode == "overwrite" else committed
    strict = write.mode in {"append", "overwrite"}

    def report(row: Row, constraint: int) -> None:
        found.append((False, row["line"], row["id"], "unique", constraint, type_.table_key))

    for position, row in enumerate(write.rest):
        earlier = write.rest[:position]
        repeats = any(row["id"] == other["id"] for other in earlier)
        exists = write.mode == "append" and any(row["id"] == other["id"] for other in kept)
        if strict and (repeats or exists):
            report(row, -1)
        if not strict and repeats and isinstance(type_, NodeType) and type_.key:
            report(row, 0)
        for constraint, columns in enumerate(type_.unique, 1):
            outside = [other for other in kept if other["id"] not in write.touched]
            is_held = row in write.folded and any(same(row, other, columns) for other in outside)
            if any(same(row, other, columns) for other in earlier) or is_held:
                report(row, constraint)
    return found


def edge_faults(edge: EdgeType, graph: dict[str, list[Row]], given_writes: dict[str, Write]) -> list[Found]:
    found: list[Found] = []
    own = given_writes.get(edge.table_key, Write("merge", False, [], []))
    is_overwritten = own.mode == "overwrite"
    kept = [] if is_overwritten else [row for row in graph[edge.table_key] if row["id"] not in own.touched]
    for constraint, (end, node) in enumerate((("src", edge.source), ("dst", edge.target))):
        nodes = given_writes.get(f"node:{node}", Write("merge", False, [], []))
        present = {row["id"] for row in graph[f"node:{node}"]} - set(nodes.removed)
        present = (set() if nodes.mode == "overwrite" else present) | {row["id"] for row in nodes.folded}
        dangling = [row for row in own.folded if row[end] not in present]
        found += [(False, row["line"], row["id"], "endpoint", constraint, edge.table_key) for row in dangling]
        retained = [row for row in kept if row[end] in nodes.gone]
        found += [(True, -1, row["id"], "endpoint", constraint, edge.table_key) for row in retained]
    gone = given_writes.get(f"node:{edge.source}", Write("merge", False, [], [])).gone
    sources = {row["src"] for row in own.folded} - gone
    old = {row["src"] for row in graph[edge.table_key] if row["id"] in own.touched} - gone
    for source in sorted(sources | old):
        mine = sorted((row for row in own.folded if row["src"] == source), key=lambda row: int(row["line"]))
        before = sum(row["src"] == source for row in kept)
        if mine and edge.high is not None and before + len(mine) > edge.high:
            beyond = mine[max(edge.high - before, 0)]
            found.append((False, beyond["line"], beyond["id"], "cardinality", 0, edge.table_key))
        if before + len(mine) < edge.low:
            found.append((True, -1, source, "cardinality", 0, edge.table_key))
    return found


def view_of(graph: dict[str, list[Row]]) -> MemoryView:
    tables = {type_.table_key: rows_of(type_.name, *graph[type_.table_key], of=SMALL) for type_ in TYPES}
    return MemoryView({table_key: rows.table for table_key, rows in tables.items()}, SMALL)


def table_change(table_key: str, write: Write) -> TableChange:
    name = table_key.split(":")[1]
    rows = rows_of(name, *write.rows, of=SMALL, lines=[row["line"] for row in write.rows])
    mode: Any = write.mode
    return change(rows, mode, removed=write.removed, coalesce=write.coalesce)


@settings(max_examples=200)
@given(graphs(), writes())
def test_a_write_breaks_what_the_words_of_the_specification_say(
    graph: dict[str, list[Row]], given_writes: dict[str, Write]
) -> None:
    wanted = expected(graph, given_writes)
    view = view_of(graph)
    log = ViolationLog(limit=1_000)

    folded = run(view, [table_change(*item) for item in given_writes.items()], log, SMALL)

    violations = log.first_violations()
    assert sorted(map(as_found, violations)) == wanted
    assert list(violations) == sorted(violations)
    follows = [(as_found(item)[:5], item.cause) for item in violations if isinstance(item, Consequence)]
    assert sorted(follows) == sorted(following(given_writes, wanted))
    assert log.consequences == len(follows)
    for table_key, write in given_writes.items():
        assert folded[table_key].ids.to_pylist() == [row["id"] for row in write.folded]


def following(
    given_writes: dict[str, Write], wanted: list[Found]
) -> Iterator[tuple[object, tuple[str, str]]]:
    """Yield the violations that are there because a node of the write was refused, and that node."""
    for is_nowhere, line, row_id, kind, constraint, table_key in wanted:
        if kind == "endpoint" and not is_nowhere:
            edge = SMALL.edges[table_key.partition(":")[2]]
            end, node = (("src", edge.source), ("dst", edge.target))[constraint]
            (row,) = [row for row in given_writes[table_key].rows if row["line"] == line]
            write = given_writes.get(f"node:{node}", Write("merge", False, [], []))
            rows = last_of_each(write.rows) if write.coalesce else write.rows
            if any(other["id"] == row[end] and other.get("kind") == "z" for other in rows):
                yield (is_nowhere, line, row_id, kind, constraint), (f"node:{node}", row[end])


def as_found(item: Violation) -> Found:
    table_key, row_id = str(item.table_key), str(item.row_id)
    return (item.file == -1, item.line, row_id, str(item.kind), item.constraint, table_key)


@settings(max_examples=50)
@given(graphs(), writes(), st.randoms(use_true_random=False))
def test_the_order_in_which_rows_arrive_does_not_matter(
    graph: dict[str, list[Row]], given_writes: dict[str, Write], random: Random
) -> None:
    expected(graph, given_writes)
    view = view_of(graph)
    changes = [table_change(*item) for item in given_writes.items()]
    straight, shuffled = ViolationLog(limit=5), ViolationLog(limit=5)
    run(view, changes, straight, SMALL)
    for write in given_writes.values():
        random.shuffle(write.rows)
    others = [table_change(*item) for item in given_writes.items()]
    random.shuffle(others)

    run(view, others, shuffled, SMALL)

    assert shuffled.first_violations() == straight.first_violations()
    assert shuffled.total == straight.total
