"""Damage that somebody is about to copy into a new file: refused, before there is a good checksum for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.commit.publish import UPKEEP_INTERVAL
from omnigraph.commit.rewritten import SHOWN_MAX
from omnigraph.core.damage import GraphDamaged
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from tests.support.engine import copy_of, ids, ndjson, new_graph, node

INSERT = "query m($n: String) { insert Person { name: $n } }"
BEFORE = "node Person { name: String @key\n age: I32?\n nick: String? }\n"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three persons, each in a file of its own, and a branch with a fork that has one more."""
    place = tmp_path_factory.mktemp("rewritten") / "graph"
    with new_graph(place, BEFORE) as graph:
        for name in ("ann", "bob", "cid"):
            graph.load(ndjson([node("Person", name=name, age=7)]), "append", index=False)
        graph.create_branch("review")
        graph.mutate(INSERT, params={"n": "dan"}, branch="review")
        graph.mutate(INSERT, params={"n": "eve"}, branch="review")
    return place


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A copy of the graph."""
    return copy_of(template, tmp_path / "graph")


def flip(file: Path) -> bytes:
    """Change one bit of the rows in a file; return what it was."""
    content = file.read_bytes()
    at = next(content.index(name) for name in (b"ann", b"bob", b"cid", b"dan", b"eve") if name in content)
    file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    return content


def data_files(root: Path, pattern: str = "nodes/*/data/*.lance") -> list[Path]:
    """Return the files of rows."""
    return sorted(root.glob(pattern))


def state(root: Path) -> tuple[set[Path], list[str]]:
    """Return the files of all tables and manifests, and the commits."""
    files = {path for path in root.rglob("*") if path.suffix in {".lance", ".manifest", ".arrow"}}
    with open_graph(root, mode="ro") as graph:
        return files, [commit.graph_commit_id for commit in graph.commits()]


def widen(graph: Graph) -> None:
    """Give a column a wider type, which writes its values anew."""
    graph.apply_schema(BEFORE.replace("I32", "I64"))


def purge(graph: Graph) -> None:
    """Drop a column for good, which writes the rest of the files anew."""
    graph.apply_schema(BEFORE.replace("\n nick: String?", ""), allow_data_loss=True)


@pytest.mark.case("engine", 840)
@pytest.mark.parametrize("rewrite", [Graph.optimize, widen, purge])
def test_damage_is_not_written_anew(root: Path, rewrite: Callable[[Graph], object]) -> None:
    victims = data_files(root)[:2]
    contents = [flip(victim) for victim in victims]
    before = state(root)

    with open_graph(root) as graph, pytest.raises(GraphDamaged) as raised:
        rewrite(graph)

    for victim in victims:
        assert str(victim.relative_to(root)) in str(raised.value)
    assert raised.value.file == str(victims[0].relative_to(root))
    assert state(root) == before
    for victim, content in zip(victims, contents, strict=True):
        victim.write_bytes(content)
    with open_graph(root) as graph:
        rewrite(graph)
        assert ids(graph, "Person") == ["ann", "bob", "cid"]
        assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 840)
def test_a_fork_is_compared_with_what_it_shares(root: Path) -> None:
    own = data_files(root, "nodes/*/tree/*/data/*.lance")[0]
    shared = data_files(root)[0]
    for victim in (own, shared):
        content = flip(victim)
        with open_graph(root) as graph, pytest.raises(GraphDamaged) as raised:
            graph.optimize(branch="review")
        assert raised.value.file == str(victim.relative_to(root))
        victim.write_bytes(content)


@pytest.mark.case("engine", 841)
def test_upkeep_leaves_damage_where_it_is_and_the_write_lands(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    victim = data_files(root)[0]
    with open_graph(root) as graph:
        flip(victim)
        for number in range(UPKEEP_INTERVAL):
            graph.mutate(INSERT, params={"n": f"n{number}"})
        found = [file.path for file in graph.verify().damaged]

    assert found == [str(victim.relative_to(root))]
    assert caplog.text.count("upkeep failed and will be retried later: the graph is damaged") == 1
    assert str(victim.relative_to(root)) in caplog.text


@pytest.mark.case("engine", 842)
def test_nothing_is_compared_where_that_is_off(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = data_files(root)[0]
    flip(victim)
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "off")

    with open_graph(root) as graph:
        assert graph.optimize().commit is not None


@pytest.mark.case("engine", 842)
def test_what_a_mutation_rewrites_is_compared_where_checksums_are(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = 'query m() { update Person set { age: 8 } where name = "ann" }'
    victim = next(file for file in data_files(root) if b"ann" in file.read_bytes())
    at = victim.read_bytes().index(b"ann")
    victim.write_bytes(victim.read_bytes()[:at] + b"anx" + victim.read_bytes()[at + 3 :])
    with open_graph(root) as graph:
        graph.mutate(update)  # reads rows, not files
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "checksums")

    with open_graph(root) as graph, pytest.raises(GraphDamaged):
        graph.mutate(update)


@pytest.mark.case("engine", 840)
def test_an_error_names_some_of_very_many_files(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", BEFORE) as graph:
        for number in range(SHOWN_MAX + 2):
            graph.load(ndjson([node("Person", name=f"ann{number}")]), "append", index=False)
        for file in data_files(tmp_path / "graph"):
            flip(file)

        with pytest.raises(GraphDamaged, match="and 2 more"):
            graph.optimize()
