"""Texts that are no Unicode, names that no file has, keys that cannot be sent: typed errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.core.errors import (
    BadRequest,
    CommitNotFound,
    EmbeddingError,
    EntityNotFound,
    OmnigraphError,
    ParameterError,
)
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.embedder import open_provider
from omnigraph.graph.graph import Graph
from tests.support.in_process import invoke

SCHEMA = """\
node P {
    name: String @key
    tags: [String]?
}
edge K: P -> P
"""
HALF = "\ud800"
QUERY = "query q($x: String) { match { $p: P { name: $x } } return { $p.name } }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("odd") / "graph", SCHEMA, durability="process")
    graph.load(b'{"type": "P", "data": {"name": "a"}}', "append", index=False)
    return graph


@pytest.mark.case("engine", 417)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (QUERY, HALF),
        ("query q($x: [String]) { match { $p: P\n $x contains $p.name } return { $p.name } }", ["a", HALF]),
        ("query q($x: String) { match { $p: P\n search($p.name, $x) } return { $p.name } }", HALF),
        ("query q($x: String) { match { $p: P\n fuzzy($p.name, $x) } return { $p.name } }", HALF),
        ("query q($x: String) { insert P { name: $x } }", HALF),
        ('query q($x: [String]) { insert P { name: "b", tags: $x } }', [HALF]),
        ('query q($x: String) { insert K { from: $x, to: "a" } }', HALF),
        ("query q($x: String) { delete P where name = $x }", HALF),
    ],
)
def test_half_of_a_surrogate_pair_in_a_parameter_is_refused(graph: Graph, text: str, value: object) -> None:
    run = graph.query if "return" in text else graph.mutate

    with pytest.raises(ParameterError, match=r"param 'x': .*half of a surrogate pair") as caught:
        run(text, params={"x": value})

    assert caught.value.name == "x"


@pytest.mark.case("engine", 417)
def test_names_that_are_no_text_name_nothing(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="not declared"):
        graph.query(QUERY, params={HALF: "a"})
    with pytest.raises(ParameterError, match="param 'é': not declared"):
        graph.query(QUERY, params={"é": "a"})
    with pytest.raises(EntityNotFound):
        graph.entity_at("P", HALF)
    with pytest.raises(CommitNotFound):
        graph.query(QUERY, params={"x": "a"}, snapshot=HALF)
    for make in (omnigraph.open, lambda place: omnigraph.init(place, SCHEMA)):
        with pytest.raises(BadRequest, match="a graph address is a path"):
            make(str(tmp_path / HALF))


@pytest.mark.parametrize("member", ["actor", "message"])
def test_an_actor_or_a_message_that_is_no_text_is_refused(graph: Graph, member: str) -> None:
    with pytest.raises(BadRequest, match=f"the {member} is not valid text"):
        graph.mutate('query q() { insert P { name: "c" } }', **{member: HALF})  # type: ignore[arg-type]  # texts both


@pytest.mark.case("engine", 417)
@pytest.mark.parametrize(
    "name", ["a\0b", "a\0b.jsonl", "P=a\0b.csv", "P=a\0b.parquet", HALF, f"P={HALF}.arrow"]
)
def test_a_name_that_no_file_has_is_refused(graph: Graph, name: str) -> None:
    with pytest.raises(BadRequest, match="its name has a character that file names cannot have"):
        graph.load(name, "append")
    with pytest.raises(BadRequest, match="its name has a character that file names cannot have"):
        graph.load([], "append", mapping=name)
    with pytest.raises(BadRequest, match="its name has a character that file names cannot have"):
        graph.load(b"{]", "append", rejects=name)
    with pytest.raises(BadRequest, match="its name has a character that file names cannot have"):
        graph.query(Path(name))
    told = invoke("load", "--store", graph.uri, "--mode", "append", "--data", name, cwd=Path(graph.uri))
    assert told.code == 1


@pytest.mark.case("engine", 417)
def test_files_whose_names_are_not_utf8_are_read(graph: Graph, tmp_path: Path) -> None:
    stem = os.fsdecode(bytes(tmp_path) + b"/\xff")
    for suffix, data in (("jsonl", '{"type": "P", "data": {"name": "b"}}'), ("csv", "name\nb\n")):
        Path(f"{stem}.{suffix}").write_text(data)
    pq.write_table(pa.table({"name": ["b"]}), tmp_path / "b.parquet")
    (tmp_path / "b.parquet").rename(f"{stem}.parquet")

    for name in (f"{stem}.jsonl", f"P={stem}.csv", f"P={stem}.parquet"):
        assert graph.load(name, "merge", dry_run=True).tables == (("node:P", 1),)


@pytest.mark.case("engine", 417)
def test_errors_about_such_names_are_printed(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{]")
    odd = os.fsencode(tmp_path) + b"/bad\xff.jsonl"
    (tmp_path / "bad.jsonl").rename(os.fsdecode(odd))
    command = [sys.executable, "-m", "omnigraph", "load", graph.uri, "--mode", "append", "--engine", "local"]
    flags = ["--json", "--rejects", str(tmp_path / "rejects"), "--data"]

    told = subprocess.run([*command, *flags, odd, "--data", odd], capture_output=True, text=True, check=False)

    assert told.returncode == 1
    assert "bad\\udcff.jsonl:1" in json.loads(told.stdout)["error"].encode(errors="backslashreplace").decode()
    assert "Traceback" not in told.stderr
    assert len((tmp_path / "rejects").read_text().splitlines()) == 2


@pytest.mark.case("engine", 417)
@pytest.mark.parametrize("kind", ["openai", "openai-compatible", "gemini"])
@pytest.mark.parametrize("key", ["schlüssel", "a\nb", "sk\u200b-1"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(kind: str, key: str) -> None:
    provider = open_provider(EmbeddingConfig(kind=kind, api_key=key, base_url="http://127.0.0.1:9"))

    with pytest.raises(EmbeddingError, match="has a character that keys cannot have") as caught:
        provider.embed(["text"], "query", 2)

    assert key not in str(caught.value)
    provider.close()


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_model_that_cannot_be_sent_is_refused(kind: str) -> None:
    config = EmbeddingConfig(
        kind=kind, api_key="k", model=HALF, base_url="http://127.0.0.1:9", retry_attempts=1
    )
    provider = open_provider(config)

    with pytest.raises(OmnigraphError):
        provider.embed(["text"], "query", 2)
    provider.close()
