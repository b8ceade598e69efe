"""The commands of the guide's page about embedding work as they are printed."""

import shlex
from pathlib import Path

import pytest

import omnigraph
from tests.engine.embed.crafts import is_unit
from tests.support.commands import write
from tests.support.in_process import invoke
from tests.support.pages import DOCS, Block, blocks

BLOCKS = list(blocks(DOCS / "guide" / "embedding.md"))


def of(language: str) -> list[Block]:
    """Return the blocks of a language."""
    return [block for block in BLOCKS if block.language == language]


def test_the_commands_of_the_page_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records, more = of("text")
    variables, *rest = of("sh")
    for line in variables.text.splitlines():
        monkeypatch.setenv(*line.removeprefix("export ").split("="))
    write(tmp_path, "archive.pg", of("pg")[0].text)
    write(tmp_path, "archive.jsonl", records.text)
    write(tmp_path, "more.jsonl", more.text)
    write(tmp_path, "seed.yaml", of("yaml")[0].text)
    typed = [line for block in rest for line in block.text.splitlines()]

    outcomes = {line: invoke(*shlex.split(line)[1:], cwd=tmp_path) for line in typed}

    assert {line: outcome.code for line, outcome in outcomes.items()} == dict.fromkeys(typed, 0)
    assert "made 2 vectors on main with acme/mini-4" in outcomes["omnigraph embed archive.omni"].stdout
    assert outcomes["omnigraph embed --seed seed.yaml"].stdout.startswith("embedded 3 of 3 selected")
    assert vectors(tmp_path / "archive.omni") == [True, True, False, True]
    assert vectors(tmp_path / "copy.omni") == [True, True, True]


def vectors(root: Path) -> list[bool]:
    """Return, for each recording, whether it has a vector of length one."""
    with omnigraph.open(root, mode="ro") as graph:
        return [is_unit(row["notes_vector"]) for row in graph.table("Recording").to_pylist()]
