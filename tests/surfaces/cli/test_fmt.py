"""`omnigraph fmt`: what it writes, what it leaves alone, and how it ends."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import READ, SCHEMA, omnigraph, prepared, write

UGLY_SCHEMA = """\
node Craft{code:String@key
name:String mass_kg:F64?}
node Mission{title:String@key}


edge Flew:Craft->Mission"""
UGLY_READ = "query craft($code:String){match{$c:Craft{code:$code}}return{$c.name}}"
BROKEN = b"node Craft {\r\n  code:String   @key,\r\n\ttabs: I32?\n"


def test_files_are_rewritten_and_named(tmp_path: Path) -> None:
    schema, query = write(tmp_path, "s.pg", UGLY_SCHEMA), write(tmp_path, "q.gq", UGLY_READ)

    outcome = omnigraph("fmt", "s.pg", "q.gq", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (0, "formatted s.pg\nformatted q.gq\n")
    assert outcome.stderr == "2 formatted, 0 unchanged, 0 failed\n"
    assert (schema.read_text(), query.read_text()) == (SCHEMA, READ)


def test_what_is_canonical_is_not_touched(tmp_path: Path) -> None:
    path = write(tmp_path, "s.pg", SCHEMA)
    before = path.stat()

    outcome = omnigraph("fmt", "s.pg", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (0, "")
    assert outcome.stderr == "0 formatted, 1 unchanged, 0 failed\n"
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_check_writes_nothing_and_fails_when_a_file_would_change(tmp_path: Path) -> None:
    ugly = write(tmp_path, "ugly.pg", UGLY_SCHEMA)
    write(tmp_path, "fine.pg", SCHEMA)

    outcome = omnigraph("fmt", "--check", "ugly.pg", "fine.pg", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "would format ugly.pg\n")
    assert outcome.stderr == "1 to format, 1 unchanged, 0 failed\n"
    assert ugly.read_text() == UGLY_SCHEMA


def test_check_succeeds_when_nothing_would_change(tmp_path: Path) -> None:
    write(tmp_path, "fine.pg", SCHEMA)

    assert omnigraph("fmt", "--check", "fine.pg", cwd=tmp_path).code == 0


@pytest.mark.parametrize("flags", [[], ["--check"]])
def test_a_file_that_does_not_parse_stays_byte_for_byte_and_the_others_are_done(
    flags: list[str], tmp_path: Path
) -> None:
    broken = write(tmp_path, "broken.pg", BROKEN)
    write(tmp_path, "ugly.gq", UGLY_READ)

    outcome = omnigraph("fmt", *flags, "broken.pg", "ugly.gq", cwd=tmp_path)

    assert outcome.code == 1
    assert broken.read_bytes() == BROKEN
    assert outcome.stdout.endswith("format ugly.gq\n" if flags else "formatted ugly.gq\n")
    assert "--> broken.pg:2:" in outcome.stderr
    assert "^" in outcome.stderr
    assert outcome.stderr.endswith("0 unchanged, 1 failed\n")


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path, "latin.pg", "node Caf\xe9 {}".encode("latin-1"))

    outcome = omnigraph("fmt", "latin.pg", cwd=tmp_path)

    assert outcome.code == 1
    assert "latin.pg" in outcome.stderr
    assert path.read_bytes() == b"node Caf\xe9 {}"


@pytest.mark.parametrize("name", ["notes.md", "schema", "s.PG", "-"])
def test_only_the_two_kinds_of_files_have_a_layout(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, UGLY_SCHEMA)

    outcome = omnigraph("fmt", name, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert name in outcome.stderr
    assert ".pg and .gq" in outcome.stderr
    assert path.read_text() == UGLY_SCHEMA


def test_a_folder_stands_for_the_files_of_both_languages_below_it(tmp_path: Path) -> None:
    write(tmp_path, "project/s.pg", UGLY_SCHEMA)
    write(tmp_path, "project/queries/deep/q.gq", UGLY_READ)
    other = write(tmp_path, "project/README.md", UGLY_READ)

    outcome = omnigraph("fmt", "project", cwd=tmp_path)

    assert outcome.code == 0
    assert outcome.stdout == "formatted project/queries/deep/q.gq\nformatted project/s.pg\n"
    assert other.read_text() == UGLY_READ


def test_a_folder_without_such_files_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()

    outcome = omnigraph("fmt", "nothing", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "nothing" in outcome.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    outcome = omnigraph("fmt", "gone.pg", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "gone.pg" in outcome.stderr


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_a_rewritten_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = write(tmp_path, "s.pg", UGLY_SCHEMA)
    path.chmod(mode)

    omnigraph("fmt", "s.pg", cwd=tmp_path)

    assert path.read_text() == SCHEMA
    assert path.stat().st_mode & 0o7777 == mode


def test_a_link_stays_a_link_and_what_it_points_at_is_rewritten(tmp_path: Path) -> None:
    target = write(tmp_path, "real/s.pg", UGLY_SCHEMA)
    link = tmp_path / "link.pg"
    link.symlink_to(Path("real", "s.pg"))

    outcome = omnigraph("fmt", "link.pg", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (0, "formatted link.pg\n")
    assert link.is_symlink()
    assert link.readlink() == Path("real", "s.pg")
    assert target.read_text() == SCHEMA
    assert [path.name for path in target.parent.iterdir()] == ["s.pg"]


def test_line_ends_of_windows_become_plain(tmp_path: Path) -> None:
    path = write(tmp_path, "s.pg", SCHEMA.replace("\n", "\r\n"))

    omnigraph("fmt", "s.pg", cwd=tmp_path)

    assert path.read_bytes() == SCHEMA.encode()


def test_a_disk_that_takes_no_more_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path, "s.pg", UGLY_SCHEMA)

    ended = subprocess.run(
        prepared("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))", "fmt", "s.pg"),
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert path.read_text() == UGLY_SCHEMA
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.pg"]
    assert "s.pg" in ended.stderr
    assert "Traceback" not in ended.stderr
