"""Requests that would cost more than they bring: blank lines, reads without end, digits, another format."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from omnigraph.bulk.datasource.read import read_options
from omnigraph.core.errors import BadRequest
from omnigraph.core.failpoint import failpoint
from omnigraph.core.yaml_text import read_yaml
from omnigraph.graph.stored_files import DeclaredQueries
from omnigraph.server.settings import ServerLimits
from tests.support.atlas import GRAPH, craft, lines, place_atlas, row_counts
from tests.support.commands import write
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of
from tests.support.in_process import invoke

READ = "query all_crafts() { match { $c: Craft } return { $c.code } }"
NDJSON = {"Content-Type": "application/x-ndjson"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
NAME_BYTES = 64 * 1024
DIGITS = "9" * 5_000
NEW = {"type": "Mission", "data": {"title": "blank"}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serving_app(settings_for(place_atlas(tmp_path_factory.mktemp("limits")))) as client:
        yield client


@pytest.mark.case("surfaces", 519)
def test_blank_lines_are_passed_over_and_counted(client: httpx.Client) -> None:
    many = 1_000_000
    blank, record = "\n" * many, json.dumps(NEW)

    load = client.post("/load/ndjson?mode=merge", content=blank + record + "\n \r\n", headers=NDJSON)
    wrong = client.post("/load/ndjson?mode=merge", content=blank + "{", headers=NDJSON)
    ingest = client.post("/ingest", json={"data": blank + record + " \n" * many})
    wrong_ingest = client.post("/ingest", json={"data": blank + '{"a": x'})

    for answer in (load, ingest):
        assert answer.status_code == 200, answer.text
        assert answer.json()["tables"] == [{"table_key": "node:Mission", "rows_loaded": 1}]
    for answer in (wrong, wrong_ingest):
        assert f"line {many + 1}: invalid JSON" in error_of(answer, 400, "bad_request")


@pytest.mark.case("surfaces", 515)
def test_a_file_of_arrow_is_refused_with_what_is_wanted(client: httpx.Client) -> None:
    table = pa.table({"title": ["a file"]})
    file, stream = io.BytesIO(), io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    before = client.get("/commits").json()

    answer = client.post("/load/arrow?type=Mission&mode=append", content=file.getvalue(), headers=ARROW)

    text = error_of(answer, 400, "bad_request")
    assert "is an Arrow IPC file, and an Arrow IPC stream is wanted" in text
    assert client.get("/commits").json() == before
    answer = client.post("/load/arrow?type=Mission&mode=append", content=stream.getvalue(), headers=ARROW)
    assert answer.status_code == 200, answer.text


@pytest.mark.case("surfaces", 516)
def test_digits_by_the_thousands_are_refused_in_our_words(client: httpx.Client, tmp_path: Path) -> None:
    record = f'{{"type": "Craft", "data": {{"code": "x", "name": "x", "mass_kg": {DIGITS}}}}}'
    token = base64.urlsafe_b64encode(f'["main", "main", {DIGITS}, []]'.encode()).decode()
    body = f'{{"query": {json.dumps(READ)}, "params": {{"a": {DIGITS}}}}}'
    literal = READ.replace("$c: Craft", f'$c: Craft {{ code: "x" }} $c.mass_kg = {DIGITS}')
    answers = [
        client.post("/query", content=body, headers={"Content-Type": "application/json"}),
        client.post("/load/ndjson?mode=merge", content=record, headers=NDJSON),
        client.post("/load", json={"data": record, "mode": "merge"}),
        client.post("/ingest", json={"data": record}),
        client.post("/query", json={"query": literal}),
        client.post("/schema/plan", json={"schema_source": f"node A {{ n: I64 = {DIGITS} }}"}),
        client.get("/diff", params={"from": "main", "to": "main", "page_token": token}),
        client.get("/commits", params={"limit": DIGITS}),
    ]
    texts = [error_of(answer, 400, "bad_request") for answer in answers]
    settings = tmp_path / "settings.yaml"
    for text in (f"a: {DIGITS}", f"a: -{DIGITS}", f"? {DIGITS}\n: 1"):
        settings.write_text(text)
        with pytest.raises(BadRequest, match="digits") as caught:
            read_yaml(settings)
        texts.append(str(caught.value))
    for number in (DIGITS, "٣"):
        with pytest.raises(BadRequest, match="numPartitions") as caught:
            read_options({"uri": "/g", "type": "Craft", "numPartitions": number})
        texts.append(str(caught.value))

    assert [text for text in texts if "int_max" in text or "conversion" in text] == []


@pytest.mark.case("surfaces", 517)
def test_a_read_has_a_limit_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = tmp_path / "stored.gq"
    columns = ", ".join(f"$c.code as c{number}" for number in range(1_000))
    long = READ.replace("{ $c.code }", f"{{ {columns} }}")
    stored.write_text(long)
    graph = place_atlas(tmp_path)
    queries = DeclaredQueries(files=(stored,))
    checked = {"query": READ.replace("$c: Craft", "$c: Craft " * 20_000)}
    with serving_app(settings_for(graph, limits=ServerLimits(read_ms=1), queries=queries)) as client:
        answers = [client.post("/query/check", json=checked), client.post("/query", json={"query": READ})]
        with failpoint("query.post_pin_pre_read", "raise"):  # a query of its own does not come so far
            answers += [
                client.post("/queries/all_crafts", json={}),
                client.post("/read", json={"query_source": long + " "}),
                client.post("/query", json={"query": long + "  "}),
            ]

    for answer in answers:
        error_of(answer, 413, "bad_request")
        assert answer.json()["resource_limit"]["resource"] == "query time in ms"
        assert answer.json()["resource_limit"]["limit"] == 1
    assert ServerLimits.from_environment().read_ms == 60_000
    monkeypatch.setenv("OMNIGRAPH_QUERY_TIMEOUT_MS", "0")
    limits = ServerLimits.from_environment()
    assert limits.read_ms == 0
    with serving_app(settings_for(graph, limits=limits)) as client:
        assert client.post("/query", json={"query": READ}).status_code == 200


@pytest.mark.slow
@pytest.mark.case("surfaces", 123)
def test_what_is_too_large_for_a_server_is_loaded_by_the_command_line(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    rows = (33 << 20) // NAME_BYTES
    large = lines(*(craft(f"L-{number}", name="x" * NAME_BYTES) for number in range(rows))).encode()
    write(tmp_path, "large.jsonl", large)

    with serving_app(settings_for(graph)) as client:
        query = client.post("/query", json={"query": READ + " " * (2 << 20)})
        load = client.post("/load/ndjson?mode=append", content=large, headers=NDJSON)
        before = row_counts(tmp_path)["node:Craft"]
    outcome = invoke(
        *("load", GRAPH, "--data", "large.jsonl", "--mode", "append", "--engine", "local", "--no-index"),
        cwd=tmp_path,
    )

    for answer, limit in ((query, 1 << 20), (load, 32 << 20)):
        error_of(answer, 413, "bad_request")
        assert answer.json()["resource_limit"]["limit"] == limit
    assert len(large) >= 33 << 20
    assert before == 3
    assert outcome.code == 0, outcome
    assert row_counts(tmp_path)["node:Craft"] == 3 + rows
