"""Who may work for a driver: a process with its versions, that sees its graph. No Spark is needed to ask."""

from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.bulk.connect.admission import Probe, admit, driver_versions, examination
from omnigraph.core.errors import SparkUnavailable

TOKEN = "__executor_probe_1"


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    (tmp_path / TOKEN).write_text("secret")
    return Probe(str(tmp_path), TOKEN, "secret", driver_versions())


def test_a_process_like_the_driver_is_admitted(probe: Probe) -> None:
    admit(probe)
    admit(None)

    assert examination(probe)() == ""


@pytest.mark.parametrize("package", ["python", "omnigraph", "pylance", "pyarrow"])
def test_another_version_of_a_package_is_refused(probe: Probe, package: str) -> None:
    wanted = tuple((name, "0.0" if name == package else found) for name, found in probe.versions)
    assert wanted != probe.versions

    with pytest.raises(SparkUnavailable, match=rf"has {package} .*, not 0\.0"):
        admit(replace(probe, versions=wanted))


def test_a_package_that_is_missing_is_refused(probe: Probe) -> None:
    wanted = (*probe.versions, ("no-such-package", "1.0"))

    with pytest.raises(SparkUnavailable, match="has no-such-package not installed"):
        admit(replace(probe, versions=wanted))


def test_a_process_that_sees_another_folder_is_refused(probe: Probe, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    with pytest.raises(SparkUnavailable, match="does not see the graph"):
        admit(replace(probe, root=str(elsewhere)))
    (elsewhere / TOKEN).write_text("of another operation")
    assert "does not see the graph" in examination(replace(probe, root=str(elsewhere)))()
