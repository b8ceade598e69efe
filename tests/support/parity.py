"""One set of calls on one graph, for comparing the ways to reach it: rows, columns, values and exceptions.

A step is a call of a `Graph`, or of what stands for one: a twin, or commands (`command_graph.py`). Every way
begins with a graph of its own and the same rows, and goes through all steps in order, because later ones see
what earlier ones wrote.
"""

import atexit
import dataclasses
import re
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, TypeAlias, cast

import pyarrow as pa

import omnigraph
from omnigraph.catalog.migration_steps import step_json
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.span import Source
from omnigraph.graph.result import Result
from tests.support.atlas import craft, flew, lines, mission
from tests.support.commands import write

SCHEMA = """\
node Craft {
    code: String @key
    name: String @index
    mass_kg: F64?
    launched: Date?
    seen: DateTime?
    tags: [String]?
    days: [Date]?
    spot: Vector(3)?
    serial: U64?
    built: enum(earth, orbit)?
}

node Mission {
    title: String @key
}

node Paper {
    code: String @key
    scan: Blob?
    pages: I32? @default(1)
}

edge Flew: Craft -> Mission {
    seat: I32?
}
"""
WIDER = SCHEMA.replace("title: String @key", "title: String @key\n    motto: String?")
NOTED = SCHEMA.replace("seat: I32?", "seat: I32?\n    note: String?")
BROKEN = SCHEMA.replace("seat: I32?", "seat: String?")
STORED = """\
query get_craft($code: String) { match { $c: Craft { code: $code } } return { $c.code, $c.seen, $c.spot } }
query add_mission($title: String) { insert Mission { title: $title } }
"""
SCAN = bytes(range(256)) * 16
SEED = lines(
    craft(
        "VGR-1",
        mass_kg=825.5,
        launched="1977-09-05",
        seen="2024-02-29T23:59:59.999Z",
        tags=["far", "old"],
        days=["1977-09-05", "1979-03-05"],
        spot=[0.5, -1.0, 2.0],
        serial="9007199254749097",
        built="earth",
    ),
    craft("VGR-2", mass_kg=0.0, tags=[]),
    craft("GLL-1"),
    mission("Grand Tour"),
    mission("Jupiter"),
    flew("VGR-1", "Grand Tour", seat=1),
    flew("VGR-2", "Grand Tour"),
    {"type": "Paper", "data": {"code": "P-1", "scan": f"base64:{b64encode(SCAN).decode()}"}},
    {"type": "Paper", "data": {"code": "P-2", "scan": "base64:", "pages": None}},
    {"type": "Paper", "data": {"code": "P-3"}},
)
ALL = (
    "query q() { match { $c: Craft } return { $c.code, $c.name, $c.mass_kg, $c.launched, $c.seen, $c.tags, "
    "$c.days, $c.spot, $c.serial, $c.built } order { $c.code } }"
)
WHOLE = "query q() { match { $c: Craft } return { $c } order { $c.code } }"
ONE = "query q($code: String) { match { $c: Craft { code: $code } } return { $c.name as name } }"
TITLES = "query q() { match { $m: Mission } return { $m.title } order { $m.title } }"
ADD = "query add($code: String) { insert Craft { code: $code, name: $code } }"
RENAME = "query name($code: String, $name: String) { update Craft set { name: $name } where code = $code }"
RETIRE = "query retire($code: String) { delete Craft where code = $code }"
NOWHERE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

AnyGraph: TypeAlias = Any  # whichever way it is reached
Call = Callable[[AnyGraph], object]


@dataclass(frozen=True, slots=True)
class Step:
    """A call, and what it is of."""

    name: str
    call: Call


def _newest(graph: AnyGraph, back: int = 0) -> str:
    return str(graph.commits(limit=back + 1)[back].graph_commit_id)


def _in_branch(graph: AnyGraph) -> object:
    with graph.branch("scratch", from_="main", merge_on_exit=True) as bound:
        bound.mutate(ADD, params={"code": "SCR-1"})
        return bound.query(ONE, params={"code": "SCR-1"})


def _failing_branch(graph: AnyGraph) -> object:
    try:
        with graph.branch("doomed", from_="main") as bound:
            return bound.delete_branch("doomed")
    finally:
        assert "doomed" not in graph.branches()


def _bound_to_nothing(graph: AnyGraph) -> object:
    with graph.branch("nowhere") as bound:
        return bound.branches()


def _conflicts(graph: AnyGraph) -> object:
    graph.create_branch("left")
    graph.mutate(RENAME, params={"code": "GLL-1", "name": "left"}, branch="left")
    graph.mutate(RENAME, params={"code": "GLL-1", "name": "right"})
    return graph.merge("left")


def _noted(graph: AnyGraph) -> object:
    done = graph.invoke("add_mission", {"title": "Charon"}, message="a stored note")
    return done, graph.commits(limit=1)


def _feed(graph: AnyGraph) -> object:
    feed = graph.changes(start="beginning")
    blocks = list(feed)
    after = graph.poll_changes(cursor=feed.cursor)
    return blocks, after.blocks, after.caught_up


def _early_cursor(graph: AnyGraph) -> object:
    return graph.changes(start="beginning").cursor


def _baseline(graph: AnyGraph) -> object:
    found = graph.baseline(types=["Mission"])
    records = list(found)
    return records, found.snapshot_commit_id == _newest(graph), found.resume_cursor is not None


def _pages(graph: AnyGraph) -> object:
    first = graph.poll_changes(start="beginning", limit=2)
    second = graph.poll_changes(page_token=first.next_page_token, limit=2)
    return first.blocks, second.blocks


def _diff(graph: AnyGraph) -> object:
    found = graph.diff("june", kinds=["node"])
    return list(found), found.stat()


def _commit_changes(graph: AnyGraph) -> object:
    found = graph.commit_changes(_newest(graph))
    return found.cause, list(found)


def _upgraded(graph: AnyGraph) -> object:
    graph.create_branch("old")
    graph.apply_schema(NOTED)
    first = graph.upgrade_branch("old", message="as main", index=False)
    again = graph.upgrade_branch(" old ", allow_data_loss=True)
    return first, again, graph.schema(branch="old"), graph.commits(branch="old", limit=1)


def _upgrade_conflicts(graph: AnyGraph) -> object:
    graph.create_branch("odd")
    graph.apply_schema(NOTED + "node Extra { name: String @key }\n")
    graph.apply_schema(NOTED + "node Extra { title: String @key }\n", branch="odd")
    return graph.upgrade_branch("odd")


def _snapshot(graph: AnyGraph) -> object:
    found = graph.snapshot("june")
    assert found.tables is not None
    tables = [(each.table_key, each.branch, each.row_count) for each in found.tables]
    return found.branch, found.commit_id == graph.commits(branch="june")[0].graph_commit_id, sorted(tables)


def _moment(graph: AnyGraph) -> object:
    first = min(commit.created_at_micros for commit in graph.commits())
    before = datetime.fromtimestamp(first / 1_000_000 - 1, UTC)
    return graph.query(TITLES, snapshot=before)


def _tables() -> dict[str, pa.Table]:
    return {
        "Mission": pa.table({"title": ["Saturn", "Titan"]}),
        "Flew": pa.table(
            {"id": ["f9"], "from": ["GLL-1"], "to": ["Titan"], "seat": pa.array([3], pa.int32())}
        ),
    }


@dataclass(frozen=True)
class Mission:
    """A mission as a program has it."""

    title: str


@dataclass(frozen=True)
class Flew:
    """A flight as a program has it."""

    from_: str
    to: str
    seat: int | None = None


def _blob(id: str, name: str = "scan", **where: object) -> Call:
    def found(graph: AnyGraph) -> object:
        it = graph.blob("node", "Paper", id, name, **where)
        with TemporaryDirectory() as folder:
            it.save(Path(folder) / "saved.bin")
            saved = (Path(folder) / "saved.bin").read_bytes()
        return it.kind, it.size, it.uri, it.etag.count('"'), it.commit_id, it.read(), it.read(2, 9), saved

    return found


def _bound_entity(graph: AnyGraph) -> object:
    with graph.branch("june") as bound:
        return bound.entity_at("Craft", "CAS-1")


def _network(graph: AnyGraph, **options: object) -> object:
    found = graph.to_networkx(**options)
    return found.graph, list(found.nodes(data=True)), list(found.edges(keys=True, data=True))


def _small_network() -> object:
    import networkx  # type: ignore[import-untyped] # it has no stubs

    made = networkx.MultiDiGraph()
    made.add_node(("Craft", "GLL-1"), name="Galileo", code="GLL-1")
    made.add_node(("Mission", "Ganymede"))
    made.add_edge(("Craft", "GLL-1"), ("Mission", "Ganymede"), ("Flew", "g1"), seat=2)
    return made


def _sql(graph: AnyGraph, text: str, **options: object) -> object:
    with graph.duckdb(**options) as sql:
        return sql.execute(text).fetchall()


def _explained(graph: AnyGraph, text: str | Source, **options: object) -> object:
    found = graph.explain(text, **options)
    return found.to_text(), found.to_json()


def _at(graph: AnyGraph) -> object:
    view = graph.at(_newest(graph, 2))
    return (
        view.describe("Mission"),
        view.explain(TITLES).to_text(),
        view.blob("node", "Paper", "P-1", "scan").read(),
    )


_JOIN = "SELECT c.name, f.seat, f.id FROM Flew f JOIN Craft c ON c.id = f.src WHERE c.code > 'A' ORDER BY ALL"

STEPS: tuple[Step, ...] = (
    Step("read of every kind of value", lambda g: g.query(ALL)),
    Step("whole entities", lambda g: g.query(WHOLE)),
    Step("no rows", lambda g: g.query(ONE, params={"code": "x"})),
    Step("one row", lambda g: g.query(ONE, params={"code": "VGR-1"}).one()),
    Step("not one row", lambda g: g.query(ALL).one()),
    Step("missing parameter", lambda g: g.query(ONE)),
    Step("wrong parameter", lambda g: g.query(ONE, params={"code": 1})),
    Step("unknown parameter", lambda g: g.query(ONE, params={"code": "x", "b": 1})),
    Step("no query", lambda g: g.query(Source("query q( {"))),
    Step("unknown type", lambda g: g.query("query q() { match { $c: Nothing } return { $c } }")),
    Step("unknown branch", lambda g: g.query(ALL, branch="nowhere")),
    Step("unknown snapshot", lambda g: g.query(ALL, snapshot=NOWHERE)),
    Step("a version", lambda g: g.query(TITLES, snapshot=g.commits()[0].manifest_version)),
    Step("unknown version", lambda g: g.query(ALL, snapshot=9_999)),
    Step("no snapshot", lambda g: g.query(ALL, snapshot=True)),
    Step("before the beginning", _moment),
    Step("the past", lambda g: g.query(TITLES, snapshot=_newest(g))),
    Step("the past as a view", lambda g: g.at(_newest(g, 1)).query(TITLES)),
    Step("a name that is none", lambda g: g.query(ALL, {"code": "x"})),
    Step("branches", lambda g: g.branches()),
    Step("a branch", lambda g: g.create_branch("june")),
    Step("a snapshot", _snapshot),
    Step("a branch twice", lambda g: g.create_branch("june")),
    Step("a branch of nothing", lambda g: g.create_branch("july", "nowhere")),
    Step("a name for no branch", lambda g: g.create_branch("a//b")),
    Step("an insert", lambda g: g.mutate(ADD, params={"code": "CAS-1"}, branch="june")),
    Step("an update", lambda g: g.mutate(RENAME, params={"code": "VGR-1", "name": "V"}, message="a note")),
    Step("nothing to change", lambda g: g.mutate(RETIRE, params={"code": "none"})),
    Step("a delete", lambda g: g.mutate(RETIRE, params={"code": "VGR-2"}, branch="june")),
    Step("a lost condition", lambda g: g.mutate(ADD, params={"code": "x"}, if_commit=NOWHERE)),
    Step("a kept condition", lambda g: g.mutate(ADD, params={"code": "NH-1"}, if_commit=_newest(g))),
    Step("a conflict of keys", lambda g: g.load(lines(craft("GLL-1")).encode(), mode="append")),
    Step("a read as a mutation", lambda g: g.mutate(Source("query q( {"))),
    Step("a load", lambda g: g.load(lines(mission("Mars"), flew("GLL-1", "Mars")).encode(), mode="merge")),
    Step("a broken load", lambda g: g.load(b'{"type":"Craft","data":{"code":"a"}}\n', mode="append")),
    Step("a dangling load", lambda g: g.load(lines(flew("none", "Mars")).encode(), mode="append")),
    Step("an unknown mode", lambda g: g.load(b"", mode="replace")),
    Step(
        "a load on a new branch",
        lambda g: g.load(lines(mission("Io")).encode(), "merge", branch="io", from_="june"),
    ),
    Step(
        "a load in advance",
        lambda g: (
            g.load(lines(mission("Mars"), mission("Eros")).encode(), "merge", dry_run=True),
            g.commits(),
        ),
    ),
    Step(
        "a load onto a new branch in advance",
        lambda g: g.load(lines(mission("Eros")).encode(), "append", branch="far", from_="june", dry_run=True),
    ),
    Step(
        "a broken load in advance",
        lambda g: g.load(lines(flew("none", "Mars")).encode(), "append", dry_run=True),
    ),
    Step(
        "a load that clears", lambda g: g.load(lines(craft("VGR-1")).encode(), "merge", strict_columns=True)
    ),
    Step(
        "a load that would clear",
        lambda g: g.load(lines(craft("VGR-1", name="V")).encode(), "merge", dry_run=True),
    ),
    Step(
        "a load that clears nothing",
        lambda g: g.load(lines(mission("Ida")).encode(), "merge", strict_columns=True),
    ),
    Step("a check that is none", lambda g: g.load(b"", "merge", dry_run="no")),
    Step(
        "a table in advance",
        lambda g: g.load_tables({"Mission": _tables()["Mission"]}, "merge", dry_run=True),
    ),
    Step(
        "a table that clears",
        lambda g: g.load_tables(
            {"Craft": pa.table({"code": ["VGR-1"], "name": ["V"]})}, "merge", strict_columns=True
        ),
    ),
    Step("a table", lambda g: g.load_tables({"Mission": _tables()["Mission"]}, "append")),
    Step("tables", lambda g: g.load_tables(_tables(), "merge")),
    Step("a table of nothing", lambda g: g.load_tables({"Nothing": _tables()["Mission"]}, "merge")),
    Step(
        "rows of types as dicts",
        lambda g: g.load_tables({"Mission": [{"title": "Io"}], "Paper": [{"code": "P-9"}]}, "merge"),
    ),
    Step("records as dicts", lambda g: g.load([{"type": "Mission", "data": {"title": "Ceres"}}], "merge")),
    Step("a record that is none", lambda g: g.load([{"title": "Ceres"}], "merge")),
    Step("objects", lambda g: g.load_objects([Flew("GLL-1", "Vesta", 4), Mission("Vesta")], "append")),
    Step("an object of another class", lambda g: g.load_objects([Mission("Rhea"), object()], "append")),
    Step("no objects", lambda g: g.load_objects(Mission("Rhea"), "append")),
    Step(
        "objects of no type", lambda g: g.load_objects([Mission("Rhea")], "append", types={Mission: "Misson"})
    ),
    Step("objects of no mode", lambda g: g.load_objects([Mission("Rhea")], "replace")),
    Step("a network", lambda g: g.load_networkx(_small_network(), "merge")),
    Step("no network", lambda g: g.load_networkx([1], "merge")),
    Step(
        "a network of no type",
        lambda g: g.load_networkx(_small_network(), "merge", node_type="x", branch="no"),
    ),
    Step("a network out", _network),
    Step("a network of some types", lambda g: _network(g, types=["Flew"], branch="june")),
    Step("a network of the past", lambda g: _network(g, snapshot=_newest(g, 3))),
    Step("a network of no types", lambda g: _network(g, types=["Flow"])),
    Step("a network of no branch", lambda g: _network(g, branch="nowhere")),
    Step("SQL", lambda g: _sql(g, _JOIN)),
    Step("SQL over every column", lambda g: _sql(g, "SELECT * FROM Craft ORDER BY id")),
    Step("SQL that counts", lambda g: _sql(g, "SELECT count(*), max(octet_length(scan)) FROM Paper")),
    Step(
        "SQL about a time", lambda g: _sql(g, "SELECT code FROM Craft WHERE seen > '2024-02-29' ORDER BY ALL")
    ),
    Step("SQL on a branch", lambda g: _sql(g, "SELECT code FROM Craft ORDER BY ALL", branch="june")),
    Step("SQL on no snapshot", lambda g: _sql(g, "SELECT 1", snapshot=NOWHERE)),
    Step("an entity", lambda g: g.entity_at("Craft", "VGR-1")),
    Step("an edge", lambda g: g.entity_at("Flew", "VGR-1 on Grand Tour")),
    Step("an entity with a Blob", lambda g: g.entity_at("node:Paper", "P-1")),
    Step("an entity on a branch", lambda g: g.entity_at("Craft", "CAS-1", "june")),
    Step("an entity of the past", lambda g: g.entity_at("Craft", "VGR-1", g.commits()[-2].graph_commit_id)),
    Step("an entity of a snapshot", lambda g: g.entity_at("Craft", "CAS-1", g.snapshot("june"))),
    Step("an entity of a branch that is bound", _bound_entity),
    Step("no entity", lambda g: g.entity_at("Craft", "nobody")),
    Step("an entity of no type", lambda g: g.entity_at("Crafts", "VGR-1")),
    Step("an entity of a type without a name", lambda g: g.entity_at(7, "VGR-1")),
    Step("an entity without an id", lambda g: g.entity_at("Craft", None)),
    Step("an entity with half a letter", lambda g: g.entity_at("Craft", "\ud800")),
    Step("an entity of no branch", lambda g: g.entity_at("Craft", "VGR-1", "nowhere")),
    Step("an entity of no commit", lambda g: g.entity_at("Craft", "VGR-1", NOWHERE)),
    Step("a value", _blob("P-1")),
    Step("a value of nothing", _blob("P-2")),
    Step("a value on a branch", _blob("P-1", branch="june")),
    Step("a value that is null", _blob("P-3")),
    Step("a value of nobody", _blob("P-4")),
    Step("a value of no type of it", _blob("P-1", "code")),
    Step("a value of no property", _blob("P-1", "scans")),
    Step("a value of no branch", _blob("P-1", branch="nowhere")),
    Step("a value of no entity", lambda g: g.blob("noun", "Paper", "P-1", "scan")),
    Step("a value with no name", lambda g: g.blob("node", "Paper", 7, "scan")),
    Step("bytes behind the end", lambda g: g.blob("node", "Paper", "P-1", "scan").read(4096)),
    Step("bytes from nowhere", lambda g: g.blob("node", "Paper", "P-1", "scan").read(-1)),
    Step("bytes the wrong way", lambda g: g.blob("node", "Paper", "P-1", "scan").read(3, 1)),
    Step("what a node type holds", lambda g: g.describe("Craft")),
    Step("what an edge type holds", lambda g: g.describe("edge:Flew", branch="june")),
    Step("what a type with a Blob held", lambda g: g.describe("Paper", snapshot=_newest(g, 1))),
    Step("what no type holds", lambda g: g.describe("Crafts")),
    Step("what a type without a name holds", lambda g: g.describe(7)),
    Step("a plan of a read", lambda g: _explained(g, ALL)),
    Step("a plan on a branch", lambda g: _explained(g, ONE, params={"code": "x"}, branch="june")),
    Step("a plan in the past", lambda g: _explained(g, TITLES, snapshot=_newest(g, 1))),
    Step("a plan of a mutation", lambda g: _explained(g, ADD)),
    Step("a plan with a wrong parameter", lambda g: _explained(g, ONE, params={"code": 1})),
    Step("a plan of no query", lambda g: _explained(g, Source("query q( {"))),
    Step("views of the past", _at),
    Step("a schema of the past", lambda g: g.at(_newest(g, 2)).schema()),
    Step(
        "rows in batches",
        lambda g: sorted(g.scan("Paper", columns=["code", "scan"]).to_arrow().to_pylist(), key=str),
    ),
    Step("rows of no column", lambda g: g.scan("Paper", columns=["cod"]).to_arrow()),
    Step("all rows of a type", lambda g: g.table("Craft")),
    Step("all rows of an edge", lambda g: g.table("Flew")),
    Step("all rows with a Blob", lambda g: g.table("node:Paper")),
    Step("all rows of no type", lambda g: g.table("Crafts")),
    Step("what a branch has", lambda g: g.snapshot("june")),
    Step("what no branch has", lambda g: g.snapshot("nowhere")),
    Step("commits", lambda g: g.commits()),
    Step("commits that are chosen", lambda g: g.commits(limit=1, where=lambda it: it.message == "a note")),
    Step("too few commits", lambda g: g.commits(limit=-1)),
    Step("a commit", lambda g: g.commit(_newest(g))),
    Step("no commit", lambda g: g.commit(NOWHERE)),
    Step("a commit of its branch", lambda g: g.commit(_newest(g), branch="main")),
    Step("a commit of another branch", lambda g: g.commit(_newest(g), branch="june")),
    Step("a commit of no branch", lambda g: g.commit(_newest(g), branch="nowhere")),
    Step("indexes", lambda g: g.index_status()),
    Step("indexes of a branch", lambda g: g.index_status(branch="june")),
    Step("indexes of no branch", lambda g: g.index_status(branch="nowhere")),
    Step("recoveries", lambda g: g.recoveries()),
    Step("differences", _diff),
    Step("differences to nothing", lambda g: list(g.diff("nowhere"))),
    Step("what a commit changed", _commit_changes),
    Step("what the first commit changed", lambda g: g.commit_changes(g.commits()[-1].graph_commit_id)),
    Step("a feed", _feed),
    Step("a feed in pages", _pages),
    Step("a cursor too early", _early_cursor),
    Step("a cursor that is none", lambda g: g.poll_changes(cursor="AAAA")),
    Step("two beginnings", lambda g: g.poll_changes(cursor="AAAA", start="now")),
    Step("a start that is none", lambda g: g.poll_changes(start="later")),
    Step("a baseline", _baseline),
    Step("an export", lambda g: list(g.export(types=["Craft", "Flew"]))),
    Step("an export of nothing", lambda g: list(g.export(types=["Nothing"]))),
    Step("the schema", lambda g: g.schema()),
    Step("a plan", lambda g: g.plan_schema(WIDER)),
    Step("a plan that cannot be", lambda g: g.plan_schema(BROKEN)),
    Step("a change of schema that cannot be", lambda g: g.apply_schema(BROKEN)),
    Step("a schema that is none", lambda g: g.apply_schema(Source("node {"))),
    Step("a change of schema", lambda g: g.apply_schema(WIDER, branch="june")),
    Step("an upgrade of nothing", lambda g: g.upgrade_branch("io")),
    Step("an upgrade", _upgraded),
    Step("an upgrade in the way of a column", _upgrade_conflicts),
    Step("an upgrade of main", lambda g: g.upgrade_branch("main")),
    Step("an upgrade of no branch", lambda g: g.upgrade_branch("nowhere")),
    Step("an upgrade of a name for no branch", lambda g: g.upgrade_branch("a//b")),
    Step("an upgrade of a number", lambda g: g.upgrade_branch(7)),
    Step("a merge in advance", lambda g: g.merge("io", into="june", dry_run=True)),
    Step("a merge", lambda g: g.merge("june")),
    Step("a merge of nothing new", lambda g: g.merge("june")),
    Step("a merge of no branch", lambda g: g.merge("nowhere")),
    Step("a merge with conflicts", _conflicts),
    Step("work on a branch", _in_branch),
    Step("work that fails", _failing_branch),
    Step("work on no branch", _bound_to_nothing),
    Step("stored queries", lambda g: g.queries()),
    Step("a stored read", lambda g: g.invoke("get_craft", {"code": "VGR-1"})),
    Step("a stored mutation", lambda g: g.invoke("add_mission", {"title": "Pluto"})),
    Step("a stored mutation with a note", _noted),
    Step("a stored read with a note", lambda g: g.invoke("get_craft", {"code": "x"}, message="a note")),
    Step("a wrong stored call", lambda g: g.invoke("get_craft", {"code": 1})),
    Step("main is not deleted", lambda g: g.delete_branch("main")),
    Step("a branch less", lambda g: g.delete_branch("io")),
    Step("a branch less than there is", lambda g: g.delete_branch("io")),
    Step("a flag that is none", lambda g: g.merge("june", dry_run="yes")),
    Step("the end", lambda g: (g.query(ALL), g.query(TITLES))),
)


def place_parity(folder: Path) -> Path:
    """Put a copy of the graph of the steps, and its stored queries, into a folder, and return the graph.

    All are copies of one: the order of types in changes is that of their identities, which are random.
    """
    shutil.copytree(_made(), folder, dirs_exist_ok=True)
    return folder / "g.omni"


@cache
def _made() -> Path:
    folder = Path(mkdtemp(prefix="parity-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write(folder, "stored.gq", STORED)
    with omnigraph.init(folder / "g.omni", SCHEMA) as graph:
        graph.load(SEED.encode(), mode="append")
    return folder


# What is compared

_VARYING = (
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID"),
    (re.compile(r"'((?:created|authored)_at(?:_micros)?)': \d+"), r"\1: TIME"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "TYPE"),
    (re.compile(r"'(next_page_token|cursor)': '[\w=-]+'"), r"\1: TOKEN"),
)
_LEFT_OUT = {"engine", "violations", "rows_read", "rejected_rows"}  # a server does not say


def raised(error: OmnigraphError) -> tuple[object, ...]:
    """Return the class of an error, its codes and the first line of its text."""
    return (type(error).__name__, error.code, error.status, error.exit_code, first_line(error))


def first_line(error: OmnigraphError) -> str:
    """Return the line that every way has of an error."""
    return str(error).partition("\n")[0]


def told(step: Step, graph: AnyGraph, raised: Callable[[Any], object] = raised) -> str:
    """Return what a step gave, or what it raised, without what differs between two graphs."""
    try:
        text = repr(plain(step.call(graph)))
    except OmnigraphError as error:
        text = repr(raised(error))
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def plain(value: object) -> object:
    """Return a value as what every way has to say of it."""
    kind = type(value).__name__.removeprefix("Remote")
    found: Any = value
    match kind:
        case "Result":
            assert isinstance(value, Result)
            return plain(value.to_arrow()), value.query_name, dict(value.target)
        case "Table":
            assert isinstance(value, pa.Table)
            return [(field.name, str(field.type)) for field in value.schema], value.to_pylist()
        case "Snapshot":
            tables = getattr(found, "entries", None)
            entries = tables.values() if tables is not None else found.tables
            counted = {entry.table_key: (entry.version, entry.row_count) for entry in entries}
            return found.branch, found.manifest_version, counted
        case "Branch":
            return found.name, found.parent_branch
        case "StoredQuery":
            return found.name, found.tool_name, found.kind, found.parameters, found.description
        case "SchemaPlan":
            return found.is_supported, [_step(step) for step in found.steps], list(found.rows)
        case "SchemaApplyResult":
            steps = [_step(step) for step in found.steps]
            return (
                found.branch,
                found.applied,
                plain(found.commit),
                steps,
                found.pending_indexes,
                found.warnings,
            )
        case _:
            pass
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
        return kind, {name: plain(of) for name, of in fields.items() if name not in _LEFT_OUT}
    if isinstance(value, str | bytes | dict):
        return value
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return value


def _step(step: object) -> dict[str, Any]:
    document = dict(step) if isinstance(step, dict) else step_json(cast("Any", step))
    document.pop("rows", None)
    return document
