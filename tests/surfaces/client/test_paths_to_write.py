"""Paths of files that are written: what is no path of one is refused, here and behind a server."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.printing import print_records
from omnigraph.core.errors import BadRequest
from tests.support.in_process import invoke
from tests.support.scripted import HEAD, Answer, serving

ABOUT = {"Omnigraph-Blob-Kind": "managed", "Omnigraph-Snapshot-Id": HEAD, "ETag": '"a"'}
FOUND: Answer = (200, b"", {**ABOUT, "Content-Length": "2"})
PART: Answer = (206, b"ab", {**ABOUT, "Content-Range": "bytes 0-1/2"})
WHOLE: Answer = (200, b"ab", ABOUT)
RECORDS: Answer = (200, b'{"type":"M","data":{"h":"\x1b[31m"}}\n', {"Content-Type": "application/x-ndjson"})
CELL = ("node", "M", "a", "body")
NO_PATHS: list[Any] = [None, 5, b"a", "", ".", "/", "a\0b", "\ud800"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.Graph]:
    place = tmp_path_factory.mktemp("paths") / "g"
    with omnigraph.init(place, "node M {\n h: String @key\n body: Blob?\n}\n") as graph:
        graph.load([{"type": "M", "data": {"h": "a", "body": "base64:YWI="}}], "append")
        yield graph


@pytest.mark.case("surfaces", 789)
@pytest.mark.parametrize("path", NO_PATHS, ids=ascii)
def test_what_is_no_path_of_a_file_is_refused(
    path: Any,  # noqa: ANN401 - what no checker of types would let pass
    graph: omnigraph.Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(FOUND, PART, RECORDS, RECORDS) as script, script.remote() as remote:
        for write in (
            graph.blob(*CELL).save,
            graph.export().to_file,
            graph.baseline().to_file,
            remote.blob(*CELL).save,
            remote.export().to_file,
            remote.baseline().to_file,
        ):
            with pytest.raises(BadRequest):
                write(path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.case("surfaces", 789)
@pytest.mark.parametrize("out", ["", ".", "/"])
def test_a_command_refuses_what_is_no_path_of_a_file(out: str, tmp_path: Path) -> None:
    with serving(WHOLE, RECORDS) as script:
        got = invoke("blob", "get", *CELL, "--store", script.url, "--out", out, cwd=tmp_path)
        exported = invoke("export", "--store", script.url, "--out", out, cwd=tmp_path)

    assert (got.code, exported.code) == (1, 1)
    for outcome in (got, exported):
        assert outcome.stderr.startswith("error: cannot write")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.case("surfaces", 790)
def test_what_a_server_sends_does_not_steer_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with serving(RECORDS, (200, b"", {**FOUND[2], "Omnigraph-Blob-Kind": "m\x1b[31m"})) as script:
        piped = invoke("export", "--store", script.url, cwd=tmp_path)
        stat = invoke("blob", "stat", *CELL, "--store", script.url, cwd=tmp_path)

    assert piped.stdout == '{"type":"M","data":{"h":"\x1b[31m"}}\n'
    assert (stat.code, stat.stdout) == (1, "")
    assert "not one of this API" in stat.stderr
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    text = '{"a": "\x1b[31m\u202e\x9bé"}\n'.encode()
    print_records(text[at : at + 1] for at in range(len(text)))
    assert capfdbinary.readouterr().out.decode() == '{"a": "\\u001b[31m\\u202e\\u009bé"}\n'
