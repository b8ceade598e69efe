"""What a Python user may give by mistake: a typed error says what it is and what is expected."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import BadRequest, ChangeCursorRejected, StorageError
from tests.support.system import unprivileged

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}
"""
FIND = "query find($name: String) { match { $p: Person  $p.name = $name } return { $p.name } }"
ADD = "query add($name: String) { insert Person { name: $name } }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    """A graph with one person."""
    made = omnigraph.init(tmp_path_factory.mktemp("people") / "g.omni", SCHEMA, durability="process")
    made.load({"Person": pa.table({"name": ["ann"]})}, "append", index=False)
    return made


@pytest.mark.case("surfaces", 234)
def test_a_mutation_and_a_query_may_be_files(graph: omnigraph.Graph, tmp_path: Path) -> None:
    (tmp_path / "add.gq").write_text(ADD)
    (tmp_path / "find.gq").write_text(FIND)

    graph.mutate(tmp_path / "add.gq", params={"name": "bo"})

    assert graph.query(str(tmp_path / "find.gq"), params={"name": "bo"}).scalar() == "bo"


def test_a_schema_may_be_the_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "people.pg").write_text(SCHEMA)

    made = omnigraph.init(tmp_path / "g.omni", str(tmp_path / "people.pg"), durability="process")

    assert list(made.catalog.nodes) == ["Person"]


@pytest.mark.case("surfaces", 234)
@pytest.mark.parametrize("verb", ["query", "explain", "mutate"])
def test_parameters_in_the_place_of_the_name(verb: str, graph: omnigraph.Graph) -> None:
    text: Any = ADD if verb == "mutate" else FIND

    with pytest.raises(
        BadRequest, match="name of a query must be a text, not a dict: pass parameters as params="
    ):
        getattr(graph, verb)(text, {"name": "ann"})


def test_parameters_in_the_place_of_the_name_on_a_snapshot(graph: omnigraph.Graph) -> None:
    view: Any = graph.at(graph.snapshot())

    for verb in (view.query, view.explain):
        with pytest.raises(BadRequest, match="not a dict"):
            verb(FIND, {"name": "ann"})


@pytest.mark.case("surfaces", 234)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([4], "an int among the data is not a path; a load takes paths"),
        ({"Person": 4}, "the table for Person is an int, not a table of .*, or a list of dicts"),
        (42, "an int cannot be loaded; a load takes paths"),
        (None, "None cannot be loaded"),
    ],
)
def test_what_is_no_table(given: object, said: str, graph: omnigraph.Graph) -> None:
    before = graph.snapshot().head.graph_commit_id
    data: Any = given

    with pytest.raises(BadRequest, match=said):
        graph.load(data, "merge")

    assert graph.snapshot().head.graph_commit_id == before


@pytest.mark.case("surfaces", 234)
def test_tables_without_types(graph: omnigraph.Graph) -> None:
    given: Any = [{"name": "x"}]

    with pytest.raises(BadRequest, match=r"expected tables by type name, as in .*, not a list of dict"):
        graph.load_tables(given, "merge")


@pytest.mark.case("surfaces", 234)
@pytest.mark.parametrize("schema", [Path("nowhere.pg"), "nowhere.pg"])
def test_a_schema_that_is_not_there(schema: str | Path, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"cannot read nowhere\.pg: No such file or directory"):
        omnigraph.init(tmp_path / "g.omni", schema)

    assert not (tmp_path / "g.omni").exists()


def test_what_is_no_text(graph: omnigraph.Graph) -> None:
    given: Any = 5

    with pytest.raises(BadRequest, match="expected the text of a schema or a query, or its path, not an int"):
        graph.query(given)


def test_a_comment_that_names_a_file_is_a_text(tmp_path: Path) -> None:
    made = omnigraph.init(tmp_path / "g.omni", "// made of people.pg", durability="process")

    assert not made.catalog.nodes


@pytest.mark.case("surfaces", 235)
def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")

    for place, said in (
        ("notes.txt", "is a file"),
        ("notes.txt/g", "is below .*notes.txt, which is a file"),
    ):
        with pytest.raises(BadRequest, match=f"{said}: a graph is a folder"):
            omnigraph.init(tmp_path / place, SCHEMA)
        for mode in ("rw", "ro"):
            with pytest.raises(BadRequest, match=f"{said}: a graph is a folder"):
                omnigraph.open(tmp_path / place, mode=mode)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can get to, unlike those of pytest."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.case("surfaces", 235)
def test_a_folder_that_may_not_be_written(open_folder: Path) -> None:
    place = open_folder / "g.omni"
    omnigraph.init(place, SCHEMA, durability="process").close()

    with unprivileged():
        with pytest.raises(StorageError, match=r"cannot be written by this user \(Permission denied\)"):
            omnigraph.open(place)
        with pytest.raises(StorageError, match=r"cannot be written by this user \(Permission denied\)"):
            omnigraph.init(open_folder / "another.omni", SCHEMA)
        rows = omnigraph.open(place, mode="ro").table("Person").num_rows

    assert rows == 0


def test_a_durability_that_there_is_not(graph: omnigraph.Graph) -> None:
    with pytest.raises(BadRequest, match="durability 'maybe' is not one of full, process"):
        omnigraph.open(graph.uri, durability="maybe")


@pytest.mark.parametrize("name", [None, b"Person", [], 7], ids=repr)
def test_a_table_is_named_by_a_text(graph: omnigraph.Graph, name: object) -> None:
    with pytest.raises(BadRequest, match="the name of a type must be a text, not "):
        graph.table(name)  # type: ignore[arg-type]

    assert graph.table("node:Person").num_rows == graph.table("Person").num_rows


def test_an_empty_name_is_not_the_current_folder(graph: omnigraph.Graph) -> None:
    with pytest.raises(BadRequest, match="the name of a file to load is empty"):
        graph.load("", "append")


@pytest.mark.parametrize(
    ("verb", "arguments", "said"),
    [
        ("query", {"source": FIND, "params": {"name": "ann"}, "snapshot": True}, "not a bool"),
        ("query", {"source": FIND, "params": {"name": "ann"}, "snapshot": 1.5}, "not a float"),
        ("at", {"snapshot": None}, "expected a snapshot, the id of a commit, .* or a time, not None"),
        ("poll_changes", {"limit": None}, "number of changes of a page must be a whole number, not None"),
        ("poll_changes", {"commits": "1"}, "number of commits of a page must be a whole number, not a str"),
        ("poll_changes", {"start": ["now"]}, "is invalid: use now, beginning or after"),
        ("load", {"data": [], "mode": "append", "mapping": 0}, "a mapping is the path of a file, not an int"),
        ("commits", {"limit": -1}, "must be a whole number from 0 on, not -1"),
        ("commits", {"limit": "2"}, "must be a whole number from 0 on, not '2'"),
    ],
)
def test_an_argument_of_another_kind(
    graph: omnigraph.Graph, verb: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadRequest, match=said):
        getattr(graph, verb)(**arguments)


@pytest.mark.parametrize("name", ["cursor", "page_token"])
def test_a_cursor_is_a_text(graph: omnigraph.Graph, name: str) -> None:
    wrong: Any = {name: 0}

    with pytest.raises(ChangeCursorRejected, match="it is an int, not a text"):
        graph.poll_changes(**wrong)


def test_blanks_around_the_name_of_a_branch_to_verify(graph: omnigraph.Graph) -> None:
    assert graph.verify(branch=" main ").branches == ("main",)


@pytest.mark.parametrize("value", [[], {}, 5, "other", b"rw"])
@pytest.mark.parametrize("name", ["mode", "durability", "writers"])
def test_a_word_of_an_open_may_be_anything_by_mistake(name: str, value: object, tmp_path: Path) -> None:
    wrong: Any = {name: value}

    with pytest.raises(BadRequest, match=f"^{name} .* (neither 'rw' nor 'ro'|is not one of)"):
        omnigraph.open(tmp_path, **wrong)
    if name == "durability":
        with pytest.raises(BadRequest, match=r"^durability "):
            omnigraph.init(tmp_path / "g.omni", SCHEMA, **wrong)


@pytest.mark.parametrize("actor", [5, [], b"mira", "", "two\nlines", "omnigraph:recovery"])
def test_a_graph_is_opened_for_an_actor_that_can_act(actor: object, tmp_path: Path) -> None:
    """At the open, not at the first write: nothing is looked for before."""
    name: Any = actor

    with pytest.raises(BadRequest, match="actor"):
        omnigraph.open(tmp_path / "nowhere", actor=name)


def test_a_message_is_a_text(graph: omnigraph.Graph) -> None:
    message: Any = 5

    with pytest.raises(BadRequest, match="the message must be a text, not int"):
        graph.mutate(ADD, params={"name": "cy"}, message=message)


KINDS_OF_CHANGES = ("changes", "commit_changes", "commit_changes_page", "diff", "poll_changes", "baseline")
GIVEN_FIRST: dict[str, dict[str, Any]] = {
    "commit_changes": {"commit_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    "commit_changes_page": {"commit_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    "diff": {"a": "main"},
    "commit": {},
    "entity_at": {"type_name": "Person"},
    "query": {"source": FIND, "params": {"name": "ann"}},
    "mutate": {"source": ADD, "params": {"name": "dee"}},
    "load": {"data": b"", "mode": "append"},
    "load_tables": {"tables": {}, "mode": "append"},
}


@pytest.mark.case("surfaces", 701)
@pytest.mark.parametrize(
    ("verb", "name", "wrong"),
    [
        *(
            (verb, name, wrong)
            for verb in KINDS_OF_CHANGES
            for name in ("kinds", "types", "ops")
            for wrong in (True, [5])
        ),
        *((verb, "types", 5) for verb in ("export", "to_networkx")),
        *(
            (verb, "commit_id", wrong)
            for verb in ("commit", "commit_changes", "commit_changes_page")
            for wrong in (None, 5, b"x")
        ),
        *(("mutate", "if_commit", wrong) for wrong in (True, 5, b"x")),
        *(
            ("query", name, wrong)
            for name in ("timeout_ms", "memory_bytes")
            for wrong in ("", 1.5, True, 10**400)
        ),
        *(("entity_at", "entity_id", wrong) for wrong in (None, 5, True, b"x", ["x"])),
        ("commits", "where", True),
        *(("embed", name, wrong) for name in ("type", "select") for wrong in (True, [5])),
        *(("embed", "batch", wrong) for wrong in (None, "", True)),
        ("load", "rejects", True),
        ("load", "data", {1: 2}),
        ("load_tables", "tables", {1: 2}),
        *(("load", name, np.array([1, 2])) for name in ("engine", "mode", "on_error")),
        *((verb, "engine", np.array([1, 2])) for verb in ("embed", "load_tables")),
    ],
    ids=str,
)
def test_an_argument_of_another_kind_is_named(
    graph: omnigraph.Graph, verb: str, name: str, wrong: object
) -> None:
    arguments: dict[str, Any] = GIVEN_FIRST.get(verb, {}) | {name: wrong}
    before = graph.snapshot().head.graph_commit_id

    with pytest.raises(BadRequest, match=f"{name} "):
        list(getattr(graph, verb)(**arguments))

    assert graph.snapshot().head.graph_commit_id == before


def test_what_can_be_listed_is_a_list_of_texts(graph: omnigraph.Graph) -> None:
    for types in (["Person"], ("Person",), {"Person"}, {"Person": 1}.keys(), iter(["Person"])):
        assert list(graph.diff("main", "main", types=types)) == []


@pytest.mark.case("surfaces", 701)
def test_an_array_without_a_dimension_is_no_data(graph: omnigraph.Graph) -> None:
    wrong: Any = np.array(1)

    with pytest.raises(BadRequest, match="cannot be loaded"):
        graph.load(wrong, "append")
    with pytest.raises(BadRequest, match="expected objects in a list"):
        graph.load_objects(wrong, "append")
    with pytest.raises(BadRequest, match="types must be names of types by class"):
        graph.load_objects([], "append", types=wrong)
