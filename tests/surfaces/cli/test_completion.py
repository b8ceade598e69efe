"""Completion of the command line by a shell, and colours that are not wanted."""

import subprocess
from pathlib import Path

import pytest

from omnigraph.cli.main import COMMANDS
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import PROGRAM, python, write
from tests.support.in_process import invoke
from tests.support.terminal import on_terminal


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("completion")
    place_atlas(made)
    assert invoke("branch", "create", "june", "--store", GRAPH, cwd=made).code == 0
    return made


def offered(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """Return what bash is offered for the last word, with the kind in front of what is no plain word."""
    with monkeypatch.context() as patch:
        patch.setenv("_OMNIGRAPH_COMPLETE", "bash_complete")
        patch.setenv("COMP_WORDS", " ".join(["omnigraph", *words]))
        patch.setenv("COMP_CWORD", str(len(words)))
        outcome = invoke(cwd=folder)
    assert (outcome.code, outcome.stderr) == (0, "")
    return [line.removeprefix("plain,") for line in outcome.stdout.splitlines() if line]


@pytest.mark.case("surfaces", 437)
def test_commands_flags_and_choices_are_offered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(folder, monkeypatch, "") == list(COMMANDS)
    assert offered(folder, monkeypatch, "desc") == ["describe"]
    assert offered(folder, monkeypatch, "--sto") == ["--store"]
    assert offered(folder, monkeypatch, "branch", "me") == ["merge"]
    assert offered(folder, monkeypatch, "query", "--query-s") == ["--query-string"]
    assert offered(folder, monkeypatch, "--store", GRAPH, "query", "--format", "js") == ["jsonl", "json"]
    assert offered(folder, monkeypatch, "status", "g") == ["file,g"]


@pytest.mark.case("surfaces", 437)
def test_names_of_a_local_graph_are_offered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(folder, monkeypatch, "query", "--store", GRAPH, "--branch", "''") == ["main", "june"]
    assert offered(folder, monkeypatch, "branch", "merge", GRAPH, "ju") == ["june"]
    assert offered(folder, monkeypatch, "branch", "delete", "--uri", GRAPH, "ju") == ["june"]
    assert offered(folder, monkeypatch, "--store", GRAPH, "describe", "''") == ["Craft", "Flew", "Mission"]
    assert offered(folder, monkeypatch, f"--store={GRAPH}", "export", "--type", "M") == ["Mission"]


@pytest.mark.case("surfaces", 437)
def test_what_cannot_be_read_offers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken" / "__manifest").mkdir(parents=True)
    write(tmp_path, "broken/_schema.pg", b"\xff not a schema")
    write(tmp_path, "broken/__branches/a.json", "[")

    assert offered(tmp_path, monkeypatch, "query", "--store", "broken", "--branch", "a") == []
    assert offered(tmp_path, monkeypatch, "--store", "broken", "describe", "A") == []
    assert offered(tmp_path, monkeypatch, "query", "--store", "missing", "--branch", "a") == ["file,a"]
    assert offered(tmp_path, monkeypatch, "nonsense", "a") == []


@pytest.mark.case("surfaces", 437)
def test_completion_imports_neither_arrow_nor_lance(folder: Path) -> None:
    listing = (
        "import sys; from omnigraph.cli.completion import branch_names, type_names; from pathlib import Path;"
        f" print(branch_names(Path({GRAPH!r})), type_names(Path({GRAPH!r})), 'pyarrow' in sys.modules)"
    )

    printed = python("-c", listing, cwd=folder).stdout

    assert printed == "['main', 'june'] ['Craft', 'Flew', 'Mission'] False\n"


@pytest.mark.case("surfaces", 437)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, tmp_path: Path) -> None:
    outcome = invoke("completion", shell, cwd=tmp_path)

    assert outcome.code == 0
    assert f"_OMNIGRAPH_COMPLETE={shell}_complete" in outcome.stdout
    assert "omnigraph" in outcome.stdout


@pytest.mark.case("surfaces", 437)
def test_another_shell_is_a_mistake_in_usage(tmp_path: Path) -> None:
    assert invoke("completion", "tcsh", cwd=tmp_path).code == 2


@pytest.mark.slow
@pytest.mark.case("surfaces", 437)
def test_bash_completes_by_the_script(folder: Path) -> None:
    lines = [
        f'PATH="{PROGRAM.parent}:$PATH"',
        'eval "$(omnigraph completion bash)"',
        f"COMP_WORDS=(omnigraph --store {GRAPH} query --branch ju); COMP_CWORD=5",
        "_omnigraph_completion omnigraph",
        'echo "${COMPREPLY[@]}"',
    ]

    ended = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(lines)], cwd=folder, capture_output=True, check=True, timeout=100
    )

    assert ended.stdout == b"june\n"


@pytest.mark.slow
@pytest.mark.case("surfaces", 438)
def test_no_color_switches_off_what_a_terminal_would_show(folder: Path) -> None:
    with on_terminal("commit", "list", GRAPH, cwd=folder, NO_COLOR="") as usual:
        assert usual.wait_for_end() == 0
    with on_terminal("commit", "list", GRAPH, cwd=folder, NO_COLOR="1") as plain:
        assert plain.wait_for_end() == 0

    assert "\x1b[1mcommit" in usual.shown
    assert "\x1b" not in plain.shown
    assert plain.shown == usual.shown.replace("\x1b[1m", "").replace("\x1b[0m", "")
