"""Where configuration is kept. Looking there costs a few calls of the system, and imports nothing."""

import os
from pathlib import Path

HOME_VARIABLE = "OMNIGRAPH_HOME"
PROJECT_VARIABLE = "OMNIGRAPH_CONFIG"
PROJECT_FILE = "omnigraph.yaml"


def operator_folder() -> Path:
    """Return the folder of the operator's own files: `$OMNIGRAPH_HOME`, or `~/.omnigraph`."""
    given = os.environ.get(HOME_VARIABLE)
    return Path(given) if given else Path("~/.omnigraph").expanduser()


def operator_path() -> Path:
    """Return the place of the operator file, which need not exist."""
    return operator_folder() / "config.yaml"


def credentials_path() -> Path:
    """Return the place of the tokens, which need not exist."""
    return operator_folder() / "credentials"


def project_path(given: str | None) -> Path | None:
    """Return the project file: the one that is named, else that of the environment, else the one here.

    A named one need not exist, and may be named by its folder. None means that nobody named one and that
    there is none here.
    """
    named = given or os.environ.get(PROJECT_VARIABLE)
    if named:
        path = Path(named)
        return path / PROJECT_FILE if path.is_dir() else path
    return Path(PROJECT_FILE) if os.path.lexists(PROJECT_FILE) else None
