"""What errors carry to a caller who is not on this machine: their details, and no path outside the graph."""

import re
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from omnigraph.core.errors import OmnigraphError
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.validate.records import LINE_BYTES_SETTING
from omnigraph.wire.error_document import error_document
from tests.support.engine import PEOPLE, head, ndjson, new_graph, node, reopen, table_path
from tests.support.queries import mutation, read
from tests.support.seam import internals

ANN = mutation('insert Person { name: "ann" }')
BOB = mutation('insert Person { name: "bob" }')
EVERYBODY = read("$p: Person", "return { $p.name }")
ULID = r"[0-9A-HJKMNP-TV-Z]{26}"
# A path begins where no name, address or other path goes on.
ABSOLUTE_PATH = re.compile(r"(?<![\w./:])/[^\s'\",;:)]+")


def overtaken(graph: Graph, text: str, rivals: str) -> None:
    """Run a mutation that a rival overtakes when it has staged."""
    rival, left = reopen(graph), [rivals]

    def overtake() -> None:
        if left:
            rival.mutate(left.pop())

    with failpoint("write.post_stage_pre_gate", call=overtake):
        graph.mutate(text, retry=0)


def lose_a_table(graph: Graph) -> None:
    overtaken(graph, mutation('update Person set { age: 1 } where name = "zoe"'), ANN)


def lose_a_table_that_was_read(graph: Graph) -> None:
    overtaken(graph, mutation('insert WorksAt { from: "zoe", to: "acme" }'), ANN)


def append_an_id_again(graph: Graph) -> None:
    graph.load(ndjson([node("Person", name="zoe")]), "append")


def clear_with_strict_columns(graph: Graph) -> None:
    graph.mutate(mutation('update Person set { age: 7 } where name = "zoe"'))
    graph.load(ndjson([node("Person", name="zoe")]), "merge", strict_columns=True)


def require_another_head(graph: Graph) -> None:
    graph.mutate(ANN, if_commit=graph.commits()[-1].graph_commit_id)


def read_a_version_that_is_gone(graph: Graph) -> None:
    before = head(graph).graph_commit_id
    graph.mutate(ANN)
    (table_path(graph, "node:Person") / "_versions" / f"{2**64 - 1 - 2:020d}.manifest").unlink()
    reopen(graph, mode="ro").query(EVERYBODY, snapshot=before)


def follow_a_feed_into_a_gap(graph: Graph) -> None:
    graph.mutate(ANN)
    (table_path(graph, "node:Person") / "_versions" / f"{2**64 - 1 - 2:020d}.manifest").unlink()
    for _ in reopen(graph, mode="ro").changes(start="beginning"):
        pass


def ask_for_the_changes_of_genesis(graph: Graph) -> None:
    graph.commit_changes(graph.commits()[-1].graph_commit_id)


def read_beyond_a_value(graph: Graph) -> None:
    graph.apply_schema(f"{graph.schema()}\nnode Page {{ code: String @key  scan: Blob? }}")
    graph.load(ndjson([node("Page", code="p", scan="base64:YWJj")]), "append")
    graph.blob("node", "Page", "p", "scan").read(7)


def read_behind_a_reference(graph: Graph) -> None:
    bases = '@external("s3://scans/")'
    graph.apply_schema(f"{graph.schema()}\nnode Page {{ code: String @key  scan: Blob? {bases} }}")
    graph.load(ndjson([node("Page", code="p", scan="s3://scans/p")]), "append")
    graph.blob("node", "Page", "p", "scan").read()


def exceed_a_limit(graph: Graph) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LINE_BYTES_SETTING, "10")
        graph.load(ndjson([node("Person", name="ann")]), "append")


def fail_before_the_publish(graph: Graph) -> None:
    with failpoint("write.post_finalize_pre_publisher", "raise"):
        graph.mutate(ANN)


def disagree_with_a_branch(graph: Graph) -> None:
    graph.create_branch("june")
    for branch, age in (("june", 1), (None, 2)):
        graph.mutate(mutation(f'update Person set {{ age: {age} }} where name = "zoe"'), branch=branch)
    graph.merge("june")


def meet_in_a_branch_that_is_gone(graph: Graph) -> None:
    for name in ("june", "fix"):
        graph.create_branch(name)
    graph.mutate(ANN, branch="fix")
    parts, ref = internals(graph).parts, internals(graph).state("fix").ref
    for target in ("june", "main"):
        graph.merge("fix", into=target)
        graph.mutate(mutation('update Person set { age: 1 } where name = "ann"'), branch=target)
    graph.delete_branch("fix")
    parts.refs.drop(parts.coordinator.address(ref))
    graph.merge("june")


DETAILS: dict[str, tuple[Callable[[Graph], None], dict[str, object]]] = {
    "manifest_conflict": (lose_a_table, {"table_key": "node:Person", "expected": 2, "actual": 3}),
    "read_set_conflict": (lose_a_table_that_was_read, {"member": "node:Person", "expected": 2, "actual": 3}),
    "key_conflict": (append_an_id_again, {"table_key": "node:Person", "row_id": "zoe"}),
    "cleared": (
        clear_with_strict_columns,
        {"table_key": "node:Person", "property": "age", "rows": 1},
    ),
    "merge_conflicts": (
        disagree_with_a_branch,
        {
            "table_key": "node:Person",
            "row_id": "zoe",
            "kind": "divergent_update",
            "message": "both sides changed it, to different values",
        },
    ),
    "ambiguous_merge_base": (
        meet_in_a_branch_that_is_gone,
        {"source": "june", "target": "main", "ancestors": r"\('[0-9A-Z]{26}',\)"},
    ),
    "precondition_failure": (require_another_head, {"expected": ULID, "actual": ULID}),
    "version_reclaimed": (read_a_version_that_is_gone, {"table_key": "node:Person", "version": 2}),
    "change_diff_refusal": (
        ask_for_the_changes_of_genesis,
        {"reason": "parentless_commit", "graph_commit_id": ULID, "before_commit_id": None, "type_name": None},
    ),
    "blob_range": (read_beyond_a_value, {"start": 7, "end": None, "length": 3}),
    "external_blob_source": (
        read_behind_a_reference,
        {"uri": "s3://scans/p", "reason": "is a reference .+ does not follow: .+"},
    ),
    "change_feed_gap": (follow_a_feed_into_a_gap, {"cursor": ".+", "first_unreadable_commit_id": ULID}),
    "resource_limit": (exceed_a_limit, {"resource": "bytes of line 1", "limit": 10, "actual": 43}),
    "recovery_required": (fail_before_the_publish, {"operation_id": ULID}),
}


def assert_names_no_path_outside(error: OmnigraphError, graph: Graph) -> None:
    """Check the message and everything that the error carries besides."""
    said = [str(error), *map(str, vars(error).values()), str(error_document(error))]
    paths = {path for text in said for path in ABSOLUTE_PATH.findall(text)}
    assert {path for path in paths if not Path(path).is_relative_to(graph.uri)} == set()


@pytest.fixture
def people(tmp_path: Path) -> Graph:
    """A graph with one person and one company."""
    return new_graph(tmp_path / "people", PEOPLE, node("Person", name="zoe"), node("Company", name="acme"))


@pytest.mark.case("engine", 282)
@pytest.mark.parametrize("detail", DETAILS)
def test_a_detail_says_which_versions_and_ids_and_no_path(people: Graph, detail: str) -> None:
    act, expected = DETAILS[detail]

    with pytest.raises(OmnigraphError) as caught:
        act(people)

    document = error_document(caught.value)
    assert document.keys() - {"error", "code"} == {detail} == {caught.value.detail}
    found = document[detail]
    if isinstance(found, list):
        (found,) = found
    assert isinstance(found, dict)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == value or re.fullmatch(str(value), str(found[name])), name
    assert_names_no_path_outside(caught.value, people)


def test_every_detail_there_is_has_a_situation() -> None:
    def below(error: type[OmnigraphError]) -> set[str | None]:
        return {error.detail}.union(*map(below, error.__subclasses__()))

    assert below(OmnigraphError) - {None} == DETAILS.keys()


def break_a_data_file(graph: Graph) -> None:
    for file in (table_path(graph, "node:Person") / "data").iterdir():
        file.write_bytes(b"nonsense")
    reopen(graph, mode="ro").query(EVERYBODY)


def break_the_manifest(graph: Graph) -> None:
    for file in (Path(graph.uri) / "__manifest" / "data").iterdir():
        file.write_bytes(b"")
    open_graph(graph.uri)


def break_a_sidecar(graph: Graph) -> None:
    folder = Path(graph.uri) / "__recovery"
    folder.mkdir(exist_ok=True)
    (folder / "01J00000000000000000000000.json").write_text("{")
    graph.mutate(ANN)


def drop_a_schema_file(graph: Graph) -> None:
    (Path(graph.uri) / "_schema.pg").unlink()
    open_graph(graph.uri)


def drift(graph: Graph) -> None:
    lance.dataset(str(table_path(graph, "node:Person"))).delete("id = 'zoe'")
    graph.mutate(BOB)


def init_again(graph: Graph) -> None:
    init(graph.uri, PEOPLE)


@pytest.mark.case("engine", 282)
@pytest.mark.parametrize(
    "act", [break_a_data_file, break_the_manifest, break_a_sidecar, drop_a_schema_file, drift, init_again]
)
def test_a_broken_graph_names_no_path_outside_of_it(people: Graph, act: Callable[[Graph], None]) -> None:
    with pytest.raises(OmnigraphError) as caught:
        act(people)

    assert_names_no_path_outside(caught.value, people)
