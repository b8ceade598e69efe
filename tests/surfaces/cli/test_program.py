"""What holds for the program whatever the command: versions, help, exit codes, streams, signals."""

import re
import signal
from pathlib import Path

import pytest

from omnigraph import __version__
from omnigraph.cli.main import COMMANDS
from tests.support.commands import (
    NO_SUCH_PROPERTY,
    READ,
    SCHEMA,
    UNPARSABLE,
    omnigraph,
    python,
    start,
    write,
)
from tests.support.in_process import invoke
from tests.support.pages import REPOSITORY

SECTION = re.compile(r"^(?P<title>\S.*):\n(?P<rows>(?:  .*\n)+)", re.MULTILINE)


@pytest.mark.case("surfaces", 1)
def test_three_spellings_print_one_version_and_the_command_also_the_format(tmp_path: Path) -> None:
    flags = [omnigraph(flag, cwd=tmp_path) for flag in ("--version", "-v")]
    command = omnigraph("version", cwd=tmp_path)

    assert [(flag.code, flag.stdout) for flag in flags] == [(0, f"omnigraph {__version__}\n")] * 2
    assert (command.code, command.stderr) == (0, "")
    assert command.stdout.splitlines() == [f"omnigraph {__version__}", "internal-schema 4"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_the_module_is_the_same_program(tmp_path: Path) -> None:
    module = python("-m", "omnigraph", "version", cwd=tmp_path)

    assert module == omnigraph("version", cwd=tmp_path)


@pytest.mark.case("surfaces", 2)
def test_without_arguments_it_lists_the_commands_by_capability_and_exits_with_2(tmp_path: Path) -> None:
    outcome = omnigraph(cwd=tmp_path)

    assert outcome.code == 2
    sections = {match["title"]: match["rows"] for match in SECTION.finditer(outcome.stdout)}
    listed = {title: [row.split()[0] for row in rows.splitlines()] for title, rows in sections.items()}
    expected: dict[str, list[str]] = {}
    for name, entry in COMMANDS.items():
        expected.setdefault(entry.section, []).append(name)
    assert {title: rows for title, rows in listed.items() if title != "Options"} == expected
    assert len(expected) > 1


@pytest.mark.parametrize("spelling", ["--help", "-h"])
def test_asking_for_help_is_a_success(spelling: str, tmp_path: Path) -> None:
    outcome = omnigraph(spelling, cwd=tmp_path)

    assert outcome.code == 0
    assert outcome.stdout == omnigraph(cwd=tmp_path).stdout


def test_every_command_of_the_table_can_be_imported_and_explains_itself(tmp_path: Path) -> None:
    for name, entry in COMMANDS.items():
        outcome = omnigraph(name, "--help", cwd=tmp_path)

        assert (outcome.code, outcome.stderr) == (0, "")
        assert outcome.stdout.startswith(f"Usage: omnigraph {name} ")
        assert entry.help.endswith(".")


@pytest.mark.case("surfaces", 3)
def test_an_unknown_command_exits_with_2_and_suggests_on_stderr_what_to_do(tmp_path: Path) -> None:
    unknown = omnigraph("frobnicate", cwd=tmp_path)

    assert (unknown.code, unknown.stdout) == (2, "")
    assert "frobnicate" in unknown.stderr
    assert "omnigraph --help" in unknown.stderr


@pytest.mark.case("surfaces", 216)
def test_there_are_no_runs(tmp_path: Path) -> None:
    unknown = omnigraph("run", "list", cwd=tmp_path)

    assert (unknown.code, unknown.stdout) == (2, "")
    assert "No such command 'run'" in unknown.stderr
    noun = re.compile(r"\b(omnigraph runs?|runs? (list|show|publish|abort)|a run of the graph|__run__)\b")
    helps = [invoke(name, "--help", cwd=tmp_path).stdout for name in COMMANDS]
    written = [
        REPOSITORY / "README.md",
        *REPOSITORY.glob("docs/guide/**/*.md"),
        *REPOSITORY.glob("docs/reference/**/*.md"),
    ]
    pages = [page.read_text() for page in written]
    assert all(helps)
    assert len(pages) > 10
    assert [found[0] for text in [*helps, *pages] for found in [noun.search(text)] if found] == []


@pytest.mark.parametrize(
    ("written", "meant"), [("lnt", "lint"), ("formt", "fmt"), ("shcema", "schema"), ("verison", "version")]
)
def test_a_misspelt_command_is_suggested(written: str, meant: str, tmp_path: Path) -> None:
    outcome = omnigraph(written, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert f"Did you mean '{meant}'?" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--frobnicate"], "--frobnicate"),
        (["lint", "--frobnicate"], "--frobnicate"),
        (["lint", "--schema", "s.pg"], "--query"),
        (["lint", "--schema"], "--schema"),
        (["schema"], "plan"),
        (["schema", "frobnicate"], "frobnicate"),
        (["schema", "plan", "--from", "s.pg"], "--schema"),
        (["fmt"], "FILE"),
        (["fmt", "--json", "q.gq"], "--json"),
        (["version", "extra"], "extra"),
    ],
    ids=" ".join,
)
def test_a_mistake_in_usage_exits_with_2_and_names_itself_on_stderr(
    arguments: list[str], named: str, tmp_path: Path
) -> None:
    outcome = omnigraph(*arguments, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert named in outcome.stderr


def test_the_flag_for_json_may_stand_before_the_command(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    write(tmp_path, "q.gq", READ)
    files = ["--schema", "s.pg", "--query", "q.gq"]

    before = omnigraph("--json", "lint", *files, cwd=tmp_path)

    assert before == omnigraph("lint", "--json", *files, cwd=tmp_path)


def test_ctrl_c_while_it_waits_for_standard_input_exits_with_130(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    process = start("lint", "--schema", "s.pg", "--query", "-", cwd=tmp_path)
    assert process.stdin is not None

    # More than a pipe holds: once this is written the process reads, and waits for an end that nobody sends.
    process.stdin.write(b"// nothing\n" * 10_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert (process.returncode, stdout) == (130, b"")
    assert b"Traceback" not in stderr


def test_a_reader_that_goes_away_early_is_no_reason_for_a_traceback(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    for number in range(2_000):
        write(tmp_path, f"queries/{number:04}.gq", READ)
    process = start("lint", "--schema", "s.pg", "--query", "queries", cwd=tmp_path)
    assert process.stdout is not None

    first = process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=60)

    assert first == b"queries/0000.gq\n"
    assert (process.returncode, stderr) == (1, b"")


@pytest.mark.parametrize("text", [READ, NO_SUCH_PROPERTY, UNPARSABLE], ids=["ok", "type error", "Q000"])
def test_what_goes_to_a_pipe_or_a_file_has_no_colours(text: str, tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "-", cwd=tmp_path, stdin=text)

    assert "\x1b" not in outcome.stdout + outcome.stderr
