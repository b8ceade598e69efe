"""Bytes of a value from a server that answers with others, or with something else."""

import gzip
from pathlib import Path

import pytest

import omnigraph
from tests.support.in_process import invoke
from tests.support.scripted import HEAD, Answer, serving

VALUE = b"0123456789"
ABOUT = {"Omnigraph-Blob-Kind": "managed", "Omnigraph-Snapshot-Id": HEAD, "ETag": '"a"'}
CELL = ("node", "Doc", "a", "body")
FOUND: Answer = (200, b"", {**ABOUT, "Content-Length": str(len(VALUE))})


def part(text: str, content: bytes, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return 206, content, {**ABOUT, "Content-Range": text, **named}


PAGE: Answer = (200, b"<html>log in</html>", {"Content-Type": "text/html"})
PACKED: Answer = (200, gzip.compress(VALUE), {**ABOUT, "Content-Encoding": "gzip"})
WHOLE: Answer = (200, VALUE, ABOUT)
WRONG_PARTS = [
    PAGE,
    WHOLE,
    part("bytes 0-1/10", b"01"),
    part("bytes 3-5/10", b"345"),
    part("bytes 3-3/10", b"3"),
    part("bytes 3-4/*", b"34"),
    part("bytes 3-4/10", b"345"),
    part("bytes 3-4/10", b"3"),
    part("bytes 3-4/10", b"34", Content_Encoding="gzip"),
    (206, b"34", ABOUT),
]
WRONG_WHOLES = [
    PAGE,
    PACKED,
    part("bytes 0-9/10", VALUE),
    (200, VALUE, {**ABOUT, "Content-Length": "100"}),
    (200, VALUE, {**ABOUT, "Content-Length": ""}),
    (200, VALUE, {"ETag": '"a"'}),
]


@pytest.mark.case("surfaces", 782)
@pytest.mark.parametrize("answer", WRONG_PARTS, ids=range(len(WRONG_PARTS)))
def test_what_is_not_the_range_is_no_bytes(answer: Answer, tmp_path: Path) -> None:
    with serving(answer) as script:
        outcome = invoke(
            "blob", "get", *CELL, "--store", script.url, "--offset", "3", "--length", "2", cwd=tmp_path
        )
    with serving(FOUND, answer) as script, script.remote() as graph:
        blob = graph.blob(*CELL)
        with pytest.raises(omnigraph.TransportError):
            blob.read(3, 5)

    assert outcome.code == 1
    assert len(outcome.stdout) <= 2
    assert "Traceback" not in outcome.stderr


@pytest.mark.case("surfaces", 782)
@pytest.mark.parametrize("answer", WRONG_WHOLES, ids=range(len(WRONG_WHOLES)))
def test_what_is_not_the_value_becomes_no_file(answer: Answer, tmp_path: Path) -> None:
    with serving(answer) as script:
        outcome = invoke("blob", "get", *CELL, "--store", script.url, "--out", tmp_path / "out", cwd=tmp_path)

    assert outcome.code == 1
    assert "error: " in outcome.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.case("surfaces", 782)
def test_a_piece_is_of_the_value_that_was_found(tmp_path: Path) -> None:
    other = part("bytes 0-9/10", VALUE, ETag='"b"')
    right = part("bytes 0-9/10", VALUE)
    with serving(FOUND, other, right) as script, script.remote() as graph:
        blob = graph.blob(*CELL)
        with pytest.raises(omnigraph.TransportError, match="of another value"):
            blob.read()
        assert blob.read() == VALUE
    with serving(WHOLE, part("bytes 3-4/10", b"34"), part("bytes 8-9/10", b"89")) as script:
        asked = [invoke("blob", "get", *CELL, "--store", script.url, cwd=tmp_path)]
        for offset in ("3", "8"):
            words = ("--offset", offset, "--length", "2" if offset == "3" else "5")
            asked.append(invoke("blob", "get", *CELL, "--store", script.url, *words, cwd=tmp_path))
    assert [outcome.stdout for outcome in asked] == [VALUE.decode(), "34", "89"]


@pytest.mark.case("surfaces", 782)
@pytest.mark.parametrize(
    "headers", [{}, ABOUT, {**ABOUT, "Content-Length": "a"}, {"Content-Length": "10"}], ids=range(4)
)
def test_a_page_describes_no_value(headers: dict[str, str]) -> None:
    with (
        serving((200, b"", {"Content-Length": "", **headers})) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError),
    ):
        graph.blob(*CELL)
