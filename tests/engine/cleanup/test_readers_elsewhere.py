"""Readers of one process beside a cleanup of another one, which knows nothing of them."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import ExpectedVersionMismatch, HistoricalVersionReclaimed
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.storage.files.version_file import version_file_name
from tests.support.engine import copy_of, edge, foreign, ndjson, new_graph, node, reopen
from tests.support.groups import together_in_line
from tests.support.queries import mutation
from tests.support.seam import internals

SCHEMA = """
node Person { name: String @key  age: I32?  bio: String? @index  place: Vector(2)? @index }
edge Knows: Person -> Person { since: I32? }
"""
QUERIES = {
    "scan": "query q() { match { $p: Person } return { $p.name as n, $p.age as a, $p.bio as b } }",
    "lookup": 'query q() { match { $p: Person { name: "p1" } } return { $p.age as a, $p.bio as b } }',
    "hop": 'query q() { match { $p: Person { name: "p1" }  $p knows $f } '
    "return { $f.name as n, $f.bio as b } }",
    "hops": "query q() { match { $p: Person  $p knows{1,3} $f } return { $f.name as n, $f.age as a } }",
    "words": 'query q() { match { $p: Person  search($p.bio, "graph") } return { $p.name as n } }',
    "near": "query q($v: Vector(2)) { match { $p: Person } return { $p.name as n } "
    "order { nearest($p.place, $v) } limit 3 }",
    "count": "query q() { match { $p: Person } return { count($p) as c, max($p.age) as a } }",
    "whole": "query q() { match { $p: Person } return { $p } }",
}
PARAMS = {"near": {"v": [1.0, 1.0]}}
UPDATE = 'query q($n: I32) { update Person set { age: $n } where name = "p1" }'
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Persons with everything that a query can use; made once, copied by tests."""
    place = tmp_path_factory.mktemp("readers") / "graph"
    people = [node("Person", name=f"p{n}", age=n, bio=f"graph {n}", place=[n, 1]) for n in range(12)]
    knows = [edge("Knows", f"p{n}", f"p{(n + 1) % 12}", since=n) for n in range(12)]
    with new_graph(place, SCHEMA) as graph:
        graph.load(ndjson([*people, *knows]), "append")
    return place


@pytest.fixture
def writer(root: Path, tmp_path: Path) -> Iterator[Graph]:
    """The handle of the process that writes and cleans up: it has readers of its own."""
    with reopen(copy_of(root, tmp_path / "graph"), upkeep=False) as opened:
        yield opened


def elsewhere(writer: Graph, mode: str = "rw") -> Graph:
    """Return a handle like one of another process: neither queues nor readers are shared."""
    other = foreign(writer) if mode == "rw" else reopen(writer, mode="ro")
    object.__setattr__(internals(other).parts, "readers", type(internals(writer).parts.readers)())
    return other


def rows(graph: Graph, kind: str, branch: str | None = None, snapshot: str | None = None) -> Rows:
    found = graph.query(QUERIES[kind], params=PARAMS.get(kind), branch=branch, snapshot=snapshot).rows
    return sorted(found, key=str)


def replace(writer: Graph) -> None:
    """Replace every row and file, and remove all that was there before."""
    writer.mutate(UPDATE, params={"n": 99})
    writer.load(ndjson(writer.export()), "overwrite", index=False)
    assert not writer.cleanup(1).failed


@pytest.mark.case("engine", 721)
@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_a_warm_reader_goes_on_at_the_head(writer: Graph, mode: str) -> None:
    reader = elsewhere(writer, mode)
    for kind in QUERIES:
        rows(reader, kind)

    replace(writer)

    for kind in QUERIES:
        assert rows(reader, kind) == rows(writer, kind), kind
    assert reader.table("Person").equals(writer.table("Person"))
    assert reader.entity_at("Person", "p1", "main")["age"] == 99
    assert reader.index_status() == writer.index_status()
    assert reader.explain(QUERIES["words"]) == writer.explain(QUERIES["words"])


@pytest.mark.case("engine", 721)
@pytest.mark.parametrize("kind", QUERIES)
def test_a_query_whose_versions_go_while_it_runs_reads_on_at_the_head(writer: Graph, kind: str) -> None:
    reader, done = elsewhere(writer), threading.Event()

    def once() -> None:
        if not done.is_set():
            done.set()
            replace(writer)

    with failpoint("query.post_pin_pre_read", "call", once):
        found = rows(reader, kind)

    assert found == rows(writer, kind)


READS: dict[str, Callable[[Graph], object]] = {
    "table": lambda graph: graph.table("Person")["age"].to_pylist()[1],
    "entity": lambda graph: graph.entity_at("Person", "p1", "main")["age"],
    "explain": lambda graph: bool(graph.explain(QUERIES["words"])) and 99,
    "index status": lambda graph: bool(graph.index_status()) and 99,
}


@pytest.mark.case("engine", 721)
@pytest.mark.parametrize("kind", READS)
def test_other_reads_of_the_present_go_on_too(writer: Graph, kind: str) -> None:
    reader = elsewhere(writer)

    with _replaced_at_the_first_open(reader, writer):
        assert READS[kind](reader) == 99


@pytest.mark.case("engine", 721)
def test_a_write_whose_versions_went_is_prepared_again_or_has_lost_its_race(writer: Graph) -> None:
    insert = 'query q() { insert Person { name: "new" }  insert Knows { from: "new", to: "p1" } }'
    for case in ("update", "insert", "load", "after maintenance"):
        other = elsewhere(writer)
        with _replaced_at_the_first_open(other, writer, only_maintenance=case == "after maintenance"):
            if case == "update":
                with pytest.raises(ExpectedVersionMismatch, match="node:Person moved"):
                    other.mutate(UPDATE, params={"n": 5}, retry=0)
            elif case == "insert":
                assert other.mutate(insert).affected_nodes == 1
            elif case == "load":
                with pytest.raises(ExpectedVersionMismatch, match="node:Person moved"):
                    other.load(ndjson([node("Person", name="lost")]), "merge", retry=0)
            else:
                assert other.mutate(UPDATE, params={"n": 7}, retry=0).affected_nodes == 1
    names = {row["n"] for row in rows(writer, "scan")}
    assert "new" in names
    assert "lost" not in names
    assert rows(writer, "lookup") == [{"a": 7, "b": "graph 1"}]


@pytest.mark.case("engine", 721)
@pytest.mark.parametrize("at", ["nodes", "edges"])
def test_mutations_of_one_group_whose_versions_went_all_land(writer: Graph, at: str) -> None:
    texts = (
        'insert Person { name: "new" }',
        'insert Knows { from: "new", to: "p1" }',
        'insert Person { name: "last" }',
    )
    other = elsewhere(writer)

    with _replaced_at_the_first_open(other, writer, at=at):
        outcomes = together_in_line(other, *(partial(other.mutate, mutation(text)) for text in texts))

    assert [getattr(found, "commit", None) is not None for found in outcomes] == [True] * 3, outcomes
    assert {"new", "last"} <= {row["n"] for row in rows(writer, "scan")}
    assert rows(writer, "lookup") == [{"a": 99, "b": "graph 1"}]


@pytest.mark.case("engine", 722)
@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_a_past_that_was_removed_says_so(writer: Graph, mode: str) -> None:
    reader = elsewhere(writer, mode)
    past = reader.snapshot()
    commit_id = past.head.graph_commit_id
    expected = {kind: rows(reader, kind) for kind in QUERIES}
    view, export, baseline = reader.at(commit_id), iter(reader.export()), reader.baseline()
    next(export)
    diff, cold = reader.diff("main", commit_id), elsewhere(writer, mode)

    replace(writer)

    later = reader.diff(commit_id)
    for kind, source in QUERIES.items():
        try:
            assert rows(reader, kind, snapshot=commit_id) == expected[kind]
            assert sorted(view.query(source, params=PARAMS.get(kind)).rows, key=str) == expected[kind]
        except HistoricalVersionReclaimed as error:
            _assert_told(error, commit_id)
    for read in (
        lambda: rows(cold, "scan", snapshot=commit_id),
        lambda: cold.entity_at("Person", "p1", commit_id),
        lambda: cold.explain(QUERIES["words"], snapshot=commit_id),
        lambda: list(export),
        lambda: list(baseline),
        lambda: list(later),
        later.stat,
    ):
        with pytest.raises(HistoricalVersionReclaimed) as raised:
            read()
        _assert_told(raised.value, commit_id)
    assert list(diff) == []  # of a commit with itself: nothing had to be read


def _assert_told(error: HistoricalVersionReclaimed, commit_id: str) -> None:
    assert error.commit_id == commit_id
    assert error.table_key in {"node:Person", "edge:Knows"}
    assert f"{error.table_key} version {error.version} was cleaned up" in str(error)
    assert commit_id in str(error)
    assert "read a newer commit" in str(error)


@pytest.mark.case("engine", 722)
def test_what_a_copy_left_behind_and_what_nobody_noted_is_not_called_cleaned_up(
    writer: Graph, tmp_path: Path
) -> None:
    past = writer.snapshot()
    writer.mutate(UPDATE, params={"n": 99})
    omnigraph.clone(writer.uri, tmp_path / "copy", depth=1)
    with omnigraph.open(tmp_path / "copy") as copy, pytest.raises(HistoricalVersionReclaimed) as raised:
        rows(copy, "scan", snapshot=past.head.graph_commit_id)
    assert "stayed behind when this graph was copied" in str(raised.value)

    entry = past.entry("node:Person")
    (Path(writer.uri) / entry.location / version_file_name(entry.version)).unlink()
    with reopen(writer) as fresh, pytest.raises(HistoricalVersionReclaimed) as raised:
        rows(fresh, "scan", snapshot=past.head.graph_commit_id)
    assert "no cleanup has noted that" in str(raised.value)
    assert "omnigraph verify" in str(raised.value)


class _replaced_at_the_first_open:
    """Have all versions replaced and removed when a handle first opens a table, of nodes or edges if told."""

    def __init__(self, reader: Graph, writer: Graph, *, only_maintenance: bool = False, at: str = "") -> None:
        self._store, self._writer, self._at = internals(reader).parts.store, writer, at
        self._only_maintenance, self._done = only_maintenance, False

    def __enter__(self) -> None:
        self._store.before_open = self._before

    def __exit__(self, *_: object) -> None:
        self._store.before_open = None
        assert self._done, "nobody opened a table"

    def _before(self, address: object, version: int) -> None:
        if self._done or "__manifest" in str(address) or f"/{self._at}" not in str(address):
            return
        self._done = True
        if not self._only_maintenance:
            replace(self._writer)
        else:
            self._writer.ensure_indices()
            self._writer.cleanup(1)


@pytest.mark.case("engine", 721)
@pytest.mark.parametrize("branch", ["main", "june"])
def test_what_is_derived_from_a_removed_version_is_made_anew(writer: Graph, branch: str) -> None:
    """The only row of a file is deleted: to bring what was derived up to date, that file would be read."""
    if branch != "main":
        writer.create_branch(branch)
    for number in range(3):
        writer.mutate(f'query q() {{ insert Person {{ name: "x{number}" }} }}', branch=branch)
    reader = elsewhere(writer)
    for kind in QUERIES:
        rows(reader, kind, branch=branch)

    writer.mutate('query q() { delete Person where name = "x1" }', branch=branch)
    assert not writer.cleanup(1).failed

    for kind in QUERIES:
        assert rows(reader, kind, branch=branch) == rows(writer, kind, branch=branch), kind


@pytest.mark.case("engine", 722)
@pytest.mark.parametrize("kind", ["scan", "whole", "near"])
def test_a_file_that_is_lost_is_damage_and_no_cleanup(writer: Graph, kind: str) -> None:
    entry = writer.snapshot().entry("node:Person")
    with reopen(writer) as fresh:
        for file in (Path(writer.uri) / entry.location / "data").iterdir():
            file.unlink()

        with pytest.raises(GraphDamaged, match="missing"):
            rows(fresh, kind)
