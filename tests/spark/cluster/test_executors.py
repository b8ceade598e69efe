"""An executor that is not like the driver is named before any work starts."""

import os
import sys
from pathlib import Path

import pytest

from omnigraph import __version__
from tests.spark.cluster.daemons import standalone_cluster
from tests.spark.cluster.friends import make_friends

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ('__version__ = "0.0.1"\n', f"has omnigraph 0.0.1, not {__version__}"),
        ('raise ImportError("not here")\n', f"has omnigraph not installed, not {__version__}"),
    ],
)
def test_an_executor_with_another_package_is_named(tmp_path: Path, module: str, problem: str) -> None:
    friends = make_friends(tmp_path, people=10, edges=10)
    folder = tmp_path / "other" / "omnigraph"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(module)
    path = os.pathsep.join([str(folder.parent), *filter(None, sys.path)])
    with standalone_cluster(tmp_path / "cluster", {"PYTHONPATH": path}, {}) as cluster:
        status, shown, told = friends.load(cluster.environment(), "--quiet")

    assert (status, shown) == (1, "")
    assert told.startswith("error: the executor on ")
    assert problem in told
    friends.assert_untouched()
    assert friends.lying_about() == []
    assert not friends.data.exists(), "nothing was written"
