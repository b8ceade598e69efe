"""Where PySpark is not installed, whatever needs it says so, and nothing else notices."""

import sys
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, craft, lines, place_atlas, row_counts
from tests.support.commands import run, write

WITHOUT = """\
import sys
sys.modules["pyspark"] = None
from omnigraph.cli.main import main
main(sys.argv[1:])
"""
IMPORT = """\
import sys
sys.modules["pyspark"] = None
import omnigraph
try:
    import omnigraph.spark
except omnigraph.SparkUnavailable as error:
    print(error)
"""
SAID = "PySpark is not installed: pip install pyspark"


@pytest.mark.case("surfaces", 236)
@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_load_on_spark_says_that_pyspark_is_missing(engine: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "data.jsonl", lines(craft("CAS-1")))
    before = row_counts(tmp_path)
    arguments = ["load", GRAPH, "--data", "data.jsonl", "--mode", "append", "--engine", engine, "--no-index"]

    outcome = run([sys.executable, "-c", WITHOUT, *arguments], cwd=tmp_path)

    if engine == "spark":
        assert (outcome.code, outcome.stdout) == (1, "")
        assert outcome.stderr.splitlines()[-1].startswith(f"error: {SAID}")
        assert row_counts(tmp_path) == before
    else:
        assert outcome.code == 0
        assert row_counts(tmp_path) != before


@pytest.mark.case("surfaces", 236)
def test_an_export_on_spark_and_the_data_source_say_so_too(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    arguments = ["export", GRAPH, "--engine", "spark", "--format", "parquet", "--out", "out"]

    exported = run([sys.executable, "-c", WITHOUT, *arguments], cwd=tmp_path)
    imported = run([sys.executable, "-c", IMPORT], cwd=tmp_path)

    assert exported.code == 1
    assert f"error: {SAID}" in exported.stderr
    assert imported.stdout.startswith(SAID)
