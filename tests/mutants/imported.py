"""A pytest plugin for the runs of `make mutants`: what is tested is the copy, or nothing is."""

import os
from pathlib import Path

import pytest

import omnigraph
from tests.mutants.guards import SOURCE


def pytest_configure(config: pytest.Config) -> None:
    """End a run that would test the package of another place."""
    imported = Path(omnigraph.__file__).resolve()
    if not imported.is_relative_to(Path(os.environ[SOURCE]).resolve()):
        raise pytest.UsageError(f"the package comes from {imported}, and not from the copy to be tested")
