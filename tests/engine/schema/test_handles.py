"""What handles see of a change that another one made, and of schema files that are behind or edited."""

from functools import partial
from pathlib import Path

import pytest

from omnigraph.core.errors import SchemaContractConflict
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.core.source_errors import TypeCheckError
from omnigraph.graph.graph import Graph
from omnigraph.history.contract import SCHEMA_FILES
from tests.engine.schema.test_races import meanwhile
from tests.engine.schema.world import EMAIL, TEAM, replaced, team
from tests.support.engine import assert_settled, files, foreign, ndjson, node, reopen, rows
from tests.support.forked import Forked
from tests.support.queries import mutation

SET_EMAIL = mutation('update Person set { email: "a@x.org" } where name = "ann"')
ASK_EMAIL = 'query q() { match { $p: Person { name: "ann" } } return { $p.email } }'


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return team(tmp_path / "graph")


_OTHER = """
import sys
from pathlib import Path
from tests.support.engine import reopen
from tests.support.queries import mutation
graph = reopen(Path(sys.argv[1]))
ask = 'query q() { match { $p: Person { name: "ann" } } return { $p.%s } }'
print(graph.query(ask % "score").to_pylist(), flush=True)
sys.stdin.readline()
print(graph.query(ask % "email").to_pylist(), flush=True)
sys.stdin.readline()
graph.mutate(mutation('update Person set { phone: "1" } where name = "ann"'))
print(graph.query(ask % "phone").to_pylist(), flush=True)
"""


@pytest.mark.case("engine", 254)
@pytest.mark.case("engine", 545)
def test_another_process_goes_by_the_new_schema_at_its_next_query_and_write(graph: Graph) -> None:
    with Forked(_OTHER, graph.uri) as other:
        assert other.read_line() == "[{'p.score': 1.5}]"
        graph.apply_schema(EMAIL, index=False)
        graph.mutate(SET_EMAIL)
        other.write_line()
        assert other.read_line() == "[{'p.email': 'a@x.org'}]"
        graph.apply_schema(replaced("email: String?", "email: String?\n phone: String?", EMAIL), index=False)
        other.write_line()
        assert other.read_line() == "[{'p.phone': '1'}]"


@pytest.mark.case("engine", 254)
def test_a_long_lived_handle_writes_and_loads_under_the_new_schema(graph: Graph) -> None:
    other = foreign(graph)
    graph.apply_schema(EMAIL, index=False)

    other.mutate(SET_EMAIL)
    other.load(ndjson([node("Person", name="cid", note="n", email="c@x.org")]), "append", index=False)

    assert {key: row["email"] for key, row in rows(other, "Person").items()} == {
        "ann": "a@x.org",
        "bob": None,
        "cid": "c@x.org",
    }
    assert other.schema() == EMAIL
    assert "email" in other.catalog.type_of("node:Person").properties


@pytest.mark.case("engine", 255)
def test_a_query_that_has_begun_keeps_its_schema_to_its_end(graph: Graph) -> None:
    other, view = foreign(graph), graph.at(graph.snapshot())
    ask = "query q() { match { $p: Person  $p.age >= 40 } return { $p.name, $p.score } }"
    old = view.query(ask).to_pylist()

    other.apply_schema(replaced("    score: F32?\n", "").replace("age: I32?", "years: I32?"), index=False)

    assert view.query(ask).to_pylist() == old == [{"p.name": "bob", "p.score": None}]
    with pytest.raises(TypeCheckError):
        graph.query(ask)
    assert view.query(ask).to_pylist() == old


def behind(graph: Graph, place: str) -> None:
    """Apply a schema, and fail before its files are all written."""
    with failpoint(place, "raise"), pytest.raises(InjectedFault):
        graph.apply_schema(EMAIL, index=False)


@pytest.mark.case("engine", 546)
@pytest.mark.parametrize("place", ["schema_apply.mid_promote"])
def test_files_that_are_behind_are_written_by_the_next_open_that_may(graph: Graph, place: str) -> None:
    root = Path(graph.uri)
    behind(graph, place)
    before = files(root)
    is_new = ["email" in (root / name).read_text() for name in ("_schema.pg", "_schema.ir.json")]
    assert sorted(is_new) == [False, True]

    with reopen(graph, mode="ro") as reader:
        assert reader.schema() == EMAIL
        assert reader.query(ASK_EMAIL).to_pylist() == [{"p.email": None}]

    assert files(root) == before
    with reopen(graph) as writer:
        assert writer.schema() == EMAIL
        writer.mutate(SET_EMAIL)
    assert (root / "_schema.pg").read_text() == EMAIL
    assert '"email"' in (root / "_schema.ir.json").read_text()
    assert_settled(reopen(graph))


@pytest.mark.case("engine", 256)
@pytest.mark.parametrize("name", SCHEMA_FILES)
def test_files_of_no_accepted_schema_are_refused_after_a_change_too(graph: Graph, name: str) -> None:
    graph.apply_schema(EMAIL, index=False)
    path = Path(graph.uri) / name
    written = path.read_text()
    path.write_text(
        written.replace("email", "mail") if "email" in written else written.replace('": "', '": "x')
    )

    for opened in (partial(reopen, graph), partial(reopen, graph, mode="ro")):
        with pytest.raises(SchemaContractConflict):
            opened()
    path.write_text(written)
    assert reopen(graph).schema() == EMAIL


@pytest.mark.case("engine", 256)
def test_an_open_handle_goes_on_by_the_accepted_schema_and_writes_edited_files_anew(graph: Graph) -> None:
    path = Path(graph.uri) / "_schema.pg"
    path.write_text(path.read_text().replace("score", "mark"))

    graph.mutate(mutation('update Person set { score: 2.5 } where name = "ann"'))
    graph.apply_schema(EMAIL, index=False)

    assert rows(graph, "Person")["ann"]["score"] == 2.5
    assert path.read_text() == EMAIL
    assert reopen(graph).schema() == EMAIL


@pytest.mark.case("engine", 256)
def test_a_comment_in_the_file_is_no_change(graph: Graph) -> None:
    graph.apply_schema(EMAIL, index=False)
    path = Path(graph.uri) / "_schema.pg"
    path.write_text("// ours\n" + path.read_text())

    assert reopen(graph).schema() == "// ours\n" + EMAIL
    assert reopen(graph, mode="ro").schema() == "// ours\n" + EMAIL


@pytest.mark.case("engine", 546)
def test_files_of_the_schema_before_are_behind_and_not_edited(graph: Graph) -> None:
    """A copy that was taken between the publish and the files looks like this."""
    root = Path(graph.uri)
    old = {name: (root / name).read_bytes() for name in SCHEMA_FILES}
    graph.apply_schema(EMAIL, index=False)
    for name, text in old.items():
        (root / name).write_bytes(text)

    assert reopen(graph, mode="ro").schema() == EMAIL
    assert (root / "_schema.pg").read_text() == TEAM
    assert reopen(graph).schema() == EMAIL
    assert (root / "_schema.pg").read_text() == EMAIL


@pytest.mark.case("engine", 545)
def test_a_query_planned_before_a_change_answers_by_its_snapshot(graph: Graph) -> None:
    other = foreign(graph)
    answers: list[object] = []

    def ask() -> None:
        answers.append(other.query(ASK_EMAIL.replace("email", "score")).to_pylist())

    with meanwhile("schema_apply.before_manifest_commit", ask):
        graph.apply_schema(replaced("    score: F32?\n", ""), index=False)

    assert answers == [[{"p.score": 1.5}]]
