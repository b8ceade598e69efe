"""A float of 32 bits has one form on every surface: the fewest digits that read back as it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.bulk.export.values import csv_batch, json_records
from omnigraph.graph.encode import json_values
from tests.support.http_app import serving_app, settings_for
from tests.support.in_process import invoke
from tests.support.seam import internals

SCHEMA = "node Probe { code: String @key  gain: F32?  steps: [F32]?  heading: Vector(2)? }"
READ = "query q() { match { $p: Probe } return { $p.gain, $p.steps, $p.heading, $p } }"
RECORD = {"code": "A", "gain": 0.1, "steps": [0.3, 1e-7], "heading": [0.7, 16777216.0]}
LINE = json.dumps({"type": "Probe", "data": RECORD})
GAIN, STEP, COMPONENT = "0.1", "0.3", "0.7"
LONG = ("0.10000000149", "0.30000001192", "0.69999998807")


class Places:
    """A graph with one row, and a server of it."""

    def __init__(self, folder: Path, client: httpx.Client) -> None:
        self.folder, self.client = folder, client
        with omnigraph.open(folder / "g.omni", mode="ro") as graph:
            self.last, self.first = (commit.graph_commit_id for commit in graph.commits(limit=2))

    def said(self, *arguments: str) -> str:
        outcome = invoke(*arguments, "--store", "g.omni", cwd=self.folder)
        assert outcome.code == 0, outcome
        return outcome.stdout

    def query(self, shape: str) -> str:
        return self.said("query", "-e", READ, "--format", shape)

    def csv_files(self) -> str:
        if not (self.folder / "out").exists():
            self.said("export", "--format", "csv", "--out", "out")
        return "".join(path.read_text() for path in sorted((self.folder / "out").glob("*.csv")))

    def baseline(self) -> str:
        with omnigraph.open(self.folder / "g.omni", mode="ro") as graph:
            return json.dumps(list(graph.baseline()))

    def python(self) -> str:
        with omnigraph.open(self.folder / "g.omni", mode="ro") as graph:
            return json.dumps(graph.query(READ).to_json())

    def served(self) -> str:
        return self.client.post("/query", json={"query": READ}).text


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("floats")
    with omnigraph.init(folder / "g.omni", SCHEMA) as graph:
        graph.load(LINE.encode(), "append", index=False)
    with serving_app(settings_for(folder / "g.omni")) as client:
        yield Places(folder, client)


@pytest.mark.case("surfaces", 521)
@pytest.mark.case("surfaces", 524)
@pytest.mark.parametrize(
    "surface",
    [
        lambda places: places.query("json"),
        lambda places: places.query("jsonl"),
        lambda places: places.query("csv"),
        lambda places: places.query("kv"),
        lambda places: places.query("table"),
        lambda places: places.python(),
        lambda places: places.served(),
        lambda places: places.said("diff", places.first, places.last, "--json"),
        lambda places: places.said("commit", "changes", places.last, "--json"),
        lambda places: places.said("export"),
        lambda places: places.csv_files(),
        lambda places: places.said("changes", "poll", "--start", "beginning", "--json"),
        lambda places: places.baseline(),
        lambda places: places.said("describe", "Probe", "--json"),
    ],
    ids=[
        "json",
        "jsonl",
        "csv",
        "kv",
        "table",
        "python",
        "http",
        "diff",
        "changes",
        "export",
        "csv export",
        "feed",
        "baseline",
        "describe",
    ],
)
def test_a_float_has_the_fewest_digits_that_read_back_as_it(
    places: Places, surface: Callable[[Places], str]
) -> None:
    said = surface(places)

    assert [digits for digits in LONG if digits in said] == []
    assert GAIN in said
    assert STEP in said
    assert (COMPONENT in said) == ('"samples"' not in said)  # vectors have none


@pytest.mark.case("surfaces", 523)
def test_a_component_that_is_no_finite_number_is_the_same_text_in_a_query_and_an_export(
    places: Places,
) -> None:
    """No write of ours stores one: the values stand for what another program wrote."""
    with omnigraph.open(places.folder / "g.omni", mode="ro") as graph:
        probe = internals(graph).catalog_on(None).type_of("node:Probe")
    pairs = [[float("nan"), float("inf")], [float("-inf"), 0.7]]
    vectors = pa.array([*pairs, None], pa.list_(pa.float32(), 2))
    count = len(vectors)
    columns = {"id": pa.array(["A", "B", "C"]), "code": pa.array(["A", "B", "C"]), "heading": vectors}
    columns |= {"gain": pa.nulls(count, pa.float32()), "steps": pa.nulls(count, pa.list_(pa.float32()))}
    batch = pa.RecordBatch.from_pydict(columns)
    texts = [["NaN", "Infinity"], ["-Infinity", 0.7], None]

    entities = json_values(pa.StructArray.from_arrays([vectors], ["heading"]))
    records = [record["data"] for record in json_records(batch, probe)]

    assert json_values(vectors) == texts
    assert entities == [{"heading": text} for text in texts]
    assert [data["heading"] for data in records if isinstance(data, dict)] == texts
    written = csv_batch(batch, probe)["heading"].to_pylist()
    assert [None if text is None else json.loads(text) for text in written] == texts
