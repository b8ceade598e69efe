"""The file that keeps what was typed, for the next session: only its user may read it.

Y1  It is made with mode 0600 in a folder of mode 0700, and brought back to that mode if others may read it.
Y2  A link, or anything else that is no plain file of this user, is left alone: the session then keeps its
    history in memory.
"""

import os
import stat
from pathlib import Path

STATE_HOME = "XDG_STATE_HOME"
MODE = 0o600


def history_file() -> Path | None:
    """Return the file, made if it is missing; None if there can be none (Y2)."""
    home = os.environ.get(STATE_HOME)
    base = Path(home) if home else Path("~/.local/state").expanduser()
    folder = base / "omnigraph"
    path = folder / "history"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, MODE)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            return None
        os.fchmod(descriptor, MODE)  # Y1
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return path
