"""Whatever the bytes of a file: a typed failure and its exit code, never a traceback."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from omnigraph.core.limits import NESTING_MAX, SOURCE_BYTES_MAX
from tests.support.commands import PROGRAM, READ, SCHEMA, omnigraph, write

GARBAGE = {
    "NUL": b"\0",
    "NUL inside": READ.encode().replace(b"craft", b"cra\0ft"),
    "not UTF-8": b"query caf\xe9() {}",
    "half a letter": "query größe".encode()[:-2],
    "a surrogate": b"\xed\xa0\x80",
    "a byte order mark": b"\xef\xbb\xbf" + READ.encode(),
    "UTF-16": READ.encode("utf-16"),
    "noise": random.Random(7).randbytes(4_096),
    "one long line": b"{" * 100_000,
    "control characters": bytes(range(1, 32)),
    "half a string": b'query q() { match { $c: Craft { code: "',
    "half a comment": b"/* query",
    "deep nesting": b"query q() { match {" + b" not {" * 5_000,
    "a huge number": b"query q() { match { $c: Craft } return { $c.code } limit " + b"9" * 5_000 + b" }",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_garbage_for_a_query_is_reported_as_a_file_that_does_not_parse(data: bytes, tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "-", cwd=tmp_path, stdin=data)

    assert outcome.code == 1
    assert "error" in (outcome.stdout + outcome.stderr).lower()


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_garbage_for_a_schema_is_a_failure_on_stderr(data: bytes, tmp_path: Path) -> None:
    write(tmp_path, "q.gq", READ)

    outcome = omnigraph("lint", "--schema", "-", "--query", "q.gq", cwd=tmp_path, stdin=data)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "parse error: " in outcome.stderr


@pytest.mark.parametrize("suffix", [".pg", ".gq"])
def test_garbage_is_never_rewritten(suffix: str, tmp_path: Path) -> None:
    for number, data in enumerate(GARBAGE.values()):
        write(tmp_path, f"{number:02}{suffix}", data)

    outcome = omnigraph("fmt", ".", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.stderr.endswith(f"0 formatted, 0 unchanged, {len(GARBAGE)} failed\n")
    kept = [(tmp_path / f"{number:02}{suffix}").read_bytes() for number in range(len(GARBAGE))]
    assert kept == list(GARBAGE.values())


def test_a_file_that_is_not_utf_8_is_named_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    write(tmp_path, "q.gq", b"query caf\xe9() {}")

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "q.gq", cwd=tmp_path)

    said = outcome.stdout + outcome.stderr
    assert outcome.code == 1
    assert "q.gq" in said
    assert "UTF-8" in said


def test_a_bad_file_among_several_does_not_stop_the_others(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    write(tmp_path, "queries/a.gq", b"\xff")
    write(tmp_path, "queries/b.gq", READ)

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "queries", cwd=tmp_path)

    assert outcome.code == 1
    assert "OK    craft (read)" in outcome.stdout


def test_a_file_above_the_limit_is_refused_with_the_limit_in_its_message(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA + "/" * (SOURCE_BYTES_MAX - len(SCHEMA) + 1))
    write(tmp_path, "q.gq", READ)

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "q.gq", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert str(SOURCE_BYTES_MAX // 1024**2) in outcome.stderr or f"{SOURCE_BYTES_MAX:,}" in outcome.stderr


def test_nesting_beyond_the_limit_names_the_limit(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    text = "query q() { match { $c: Craft " + "not { $c flew $m " * (NESTING_MAX + 1)

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "-", cwd=tmp_path, stdin=text)

    assert outcome.code == 1
    assert str(NESTING_MAX) in outcome.stdout


def test_a_file_name_that_is_no_text_can_be_linted(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    (tmp_path / "queries").mkdir()
    try:
        (tmp_path / "queries" / os.fsdecode(b"\xff.gq")).write_text(READ)
    except OSError:
        pytest.skip("this file system wants names in UTF-8")

    ended = subprocess.run(
        [PROGRAM, "lint", "--schema", "s.pg", "--query", "queries"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"OK    craft (read)" in ended.stdout
