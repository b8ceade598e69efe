"""`/table`, `/describe` and `/query/explain`: the rows of a type, what they hold, and how a read would go."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.catalog.build import compile_schema
from omnigraph.core.span import Source
from omnigraph.wire import responses, schema_responses
from omnigraph.wire.describe_document import describe_document
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of
from tests.support.in_process import invoke
from tests.support.parity import ADD, ONE, SCAN, SCHEMA, place_parity

ROWS_MANY = 40_000  # more than one answer without a stream has
NOWHERE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = place_parity(tmp_path_factory.mktemp("tables"))
    with omnigraph.open(place) as graph:
        graph.create_branch("large")
        titles = pa.table({"title": [f"mission {number}" for number in range(ROWS_MANY)]})
        graph.load_tables({"Mission": titles}, "append", branch="large", index=False)
        graph.create_branch("empty")
        graph.load_tables({"Flew": []}, "overwrite", branch="empty", index=False)
    return place


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[httpx.Client]:
    with serving_app(settings_for(place)) as client:
        yield client


def rows(answer: httpx.Response) -> pa.Table:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    with pa.ipc.open_stream(answer.content) as reader:
        table = reader.read_all()
    assert int(answer.headers["omnigraph-row-count"]) == table.num_rows
    return table


@pytest.mark.case("surfaces", 725)
def test_the_rows_of_a_type_are_a_stream_of_arrow(client: httpx.Client, place: Path) -> None:
    with omnigraph.open(place, mode="ro") as graph:
        for name in ("Craft", "Mission", "edge:Flew", "node:Paper"):
            found = rows(client.get("/table", params={"type": name}))
            assert found.sort_by("id").equals(graph.table(name).replace_schema_metadata(None)), name
            assert rows(client.get("/graphs/default/table", params={"type": name})).equals(found)
        head = graph.commits(limit=1)[0].graph_commit_id

    some = client.get("/table", params={"type": "Paper", "column": ["scan", "code"]})
    assert some.headers["omnigraph-graph-commit-id"] == head
    assert {row["code"]: row["scan"] for row in rows(some).to_pylist()} == {
        "P-1": SCAN,
        "P-2": b"",
        "P-3": None,
    }
    assert rows(some).column_names == ["code", "scan"]
    none = rows(client.get("/table", params={"type": "Flew", "branch": "empty"}))
    assert (none.num_rows, none.column_names) == (0, ["id", "src", "dst", "seat"])


@pytest.mark.case("surfaces", 725)
def test_many_rows_are_sent_in_pieces(client: httpx.Client) -> None:
    params = {"type": "Mission", "branch": "large"}
    with client.stream("GET", "/table", params=params) as answer:
        answer.read()

    assert answer.headers["transfer-encoding"] == "chunked"
    assert rows(answer).num_rows == ROWS_MANY + 2


@pytest.mark.case("surfaces", 725)
@pytest.mark.parametrize(
    ("params", "status", "told"),
    [
        ({}, 400, "type"),
        ({"type": "Crafts"}, 400, "unknown type 'Crafts'; did you mean 'Craft'?"),
        ({"type": "Craft", "column": "cod"}, 400, "Craft has no property 'cod'; did you mean 'code'?"),
        ({"type": "Craft", "branch": "main", "snapshot": NOWHERE}, 400, "exclude each other"),
        ({"type": "Craft", "branch": "nowhere"}, 404, "nowhere"),
        ({"type": "Craft", "snapshot": NOWHERE}, 404, NOWHERE),
    ],
)
def test_what_is_no_table_is_refused(
    params: dict[str, str], status: int, told: str, client: httpx.Client
) -> None:
    code = "bad_request" if status == 400 else "not_found"
    assert told in error_of(client.get("/table", params=params), status, code)


@pytest.mark.case("surfaces", 726)
def test_a_type_is_described_as_the_command_does(client: httpx.Client, place: Path) -> None:
    with omnigraph.open(place, mode="ro") as graph:
        for name in ("Craft", "edge:Flew", "Paper"):
            answer = client.get("/describe", params={"type": name})
            assert answer.status_code == 200, answer.text
            responses.DescribeOutput.model_validate(answer.json(), strict=True)
            assert answer.json() == describe_document(graph.describe(name), answer.json()["uri"])
            assert client.get("/graphs/default/describe", params={"type": name}).json() == answer.json()
    error_of(client.get("/describe", params={"type": "Crafts"}), 400, "bad_request")
    both = {"type": "Craft", "branch": "main", "snapshot": NOWHERE}
    error_of(client.get("/describe", params=both), 400, "bad_request")


@pytest.mark.case("surfaces", 726)
def test_a_plan_is_shown_and_nothing_is_run(client: httpx.Client, place: Path) -> None:
    with omnigraph.open(place, mode="ro") as graph:
        plan = graph.explain(ONE)
    answer = client.post("/query/explain", json={"query": ONE})

    assert answer.status_code == 200, answer.text
    responses.ExplainOutput.model_validate(answer.json(), strict=True)
    assert answer.json() == {"plan": plan.to_json(), "text": plan.to_text()}
    assert client.post("/graphs/default/query/explain", json={"query": ONE}).json() == answer.json()
    for body in (
        {"query": ADD},
        {"query": ONE, "name": "nope"},
        {"query": ONE, "params": {"code": 1}},
        {"query": ONE, "branch": "main", "snapshot": NOWHERE},
        {"query": str(place)},
    ):
        error_of(client.post("/query/explain", json=body), 400, "bad_request")


@pytest.mark.case("surfaces", 728)
@pytest.mark.parametrize(
    "words",
    [
        ["describe", "Craft"],
        ["describe", "Flew", "--branch", "large"],
        ["describe", "Crafts"],
        ["explain", "-e", ONE],
        ["explain", "-e", ONE, "--snapshot", "2"],
        ["explain", "-e", ADD],
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_commands_print_the_same_of_a_server(
    words: list[str], form: list[str], client: httpx.Client, place: Path, tmp_path: Path
) -> None:
    here = invoke(*words, "--store", place, *form, cwd=tmp_path)
    there = invoke(*words, "--server", str(client.base_url), *form, cwd=tmp_path)

    assert there.code == here.code, there.stderr
    assert there.stdout.replace(str(client.base_url), "HERE") == here.stdout.replace(str(place), "HERE")


@pytest.mark.case("surfaces", 729)
def test_the_schema_of_a_commit_is_shown_with_its_branch(client: httpx.Client) -> None:
    head = client.get("/commits?branch=large&limit=1").json()["commits"][0]["graph_commit_id"]

    found = client.get("/schema", params={"snapshot": head}).json()

    schema_responses.SchemaOutput.model_validate(found, strict=True)
    assert found["branch"] == "large"
    assert (
        compile_schema(Source(found["schema_source"])).shape_hash == compile_schema(Source(SCHEMA)).shape_hash
    )
    error_of(client.get("/schema", params={"snapshot": NOWHERE}), 404, "not_found")
    both = {"branch": "main", "snapshot": head}
    error_of(client.get("/schema", params=both), 400, "bad_request")
