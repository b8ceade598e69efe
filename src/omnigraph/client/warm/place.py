"""Where a warm server listens: one socket for each graph, in a folder that only its user can enter.

W1  Folder and socket belong to this user and to nobody's group, and neither is a link. What is otherwise is
    neither used nor mended: somebody else may have put it there.
W2  Both ends ask the system whose process is at the other end, before they send or read anything.
"""

import fcntl
import hashlib
import os
import socket
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.errors import BadRequest

FOLDER_MODE, SOCKET_MODE = 0o700, 0o600
RUNTIME_HOME = "XDG_RUNTIME_DIR"
_NAME_BYTES = 10  # of the digest: enough for all graphs of a user, and a path that the system takes
_PATH_BYTES_MAX = 103  # what macOS takes; Linux takes four more
_OTHERS = 0o077
_PEERCRED: int | None = getattr(socket, "SO_PEERCRED", None)  # of Linux
# macOS has these in sys/un.h and no names for them in Python.
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID, _XUCRED_BYTES = 0, 1, 2, 76


@dataclass(frozen=True, slots=True)
class WarmPlace:
    """The files of the warm server of one graph, which need not exist."""

    root: str
    folder: Path
    name: str

    @staticmethod
    def of(root: str) -> "WarmPlace":
        """Return the place for a graph, by the one spelling of its root."""
        name = hashlib.blake2b(os.fsencode(root), digest_size=_NAME_BYTES).hexdigest()
        return WarmPlace(root, _folder(len(name)), name)

    @property
    def socket(self) -> Path:
        """The socket that the server listens on."""
        return self.folder / f"{self.name}.sock"

    @property
    def lock(self) -> Path:
        """The file that a server holds a lock on for as long as it lives."""
        return self.folder / f"{self.name}.lock"

    def is_held(self) -> bool:
        """Say whether a server lives there."""
        try:
            with self.lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def make_folder(self) -> None:
        """Make the folder, for a server.

        Raises:
            BadRequest: it cannot be made, or belongs to somebody else (W1).
        """
        try:
            self.folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
            reason = self.distrust_of_folder(os.geteuid())
        except OSError as error:
            raise BadRequest(f"{self.folder} cannot be made: {error.strerror}") from error
        if reason is not None:
            raise BadRequest(f"{reason}: remove it, or set {RUNTIME_HOME} to a folder of your own")

    def distrust(self, uid: int) -> str | None:
        """Return why a user's commands do not use the socket; None if they do (W1).

        Raises:
            FileNotFoundError: there is none.
        """
        return self.distrust_of_folder(uid) or _distrust(self.socket, uid, stat.S_ISSOCK, "a socket")

    def distrust_of_folder(self, uid: int) -> str | None:
        """Return why the folder is not used; None if it is (W1)."""
        return _distrust(self.folder, uid, stat.S_ISDIR, "a folder")


def require_own_peer(end: socket.socket) -> None:
    """Make sure that a process of this user is at the other end (W2).

    Raises:
        PermissionError: it is somebody else's.
    """
    if peer_uid(end) != os.geteuid():
        raise PermissionError("a process of another user is at the other end")


def peer_uid(end: socket.socket) -> int:
    """Return the user of the process at the other end."""
    if _PEERCRED is not None:
        return _ucred(end)[1]
    return int(struct.unpack_from("=II", end.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES))[1])


def peer_pid(end: socket.socket) -> int:
    """Return the process at the other end."""
    if _PEERCRED is not None:
        return _ucred(end)[0]
    return int(struct.unpack("=i", end.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))[0])


def _ucred(end: socket.socket) -> tuple[int, int]:
    assert _PEERCRED is not None, "Linux has it"
    pid, uid, _ = struct.unpack("=iII", end.getsockopt(socket.SOL_SOCKET, _PEERCRED, 12))
    return pid, uid


def _folder(name_characters: int) -> Path:
    """Return the folder in the user's runtime directory, else below the temporary one."""
    runtime = os.environ.get(RUNTIME_HOME, "")
    rest = name_characters + len("/.sock")
    if runtime.startswith("/") and len(os.fsencode(runtime)) + len("/omnigraph") + rest <= _PATH_BYTES_MAX:
        return Path(runtime) / "omnigraph"
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"omnigraph-{os.geteuid()}"  # noqa: S108 - checked by W1


def _distrust(path: Path, uid: int, is_kind: Callable[[int], bool], kind: str) -> str | None:
    found = path.lstat()
    if not is_kind(found.st_mode):
        return f"{path} is not {kind}"
    if found.st_uid != uid:
        return f"{path} belongs to another user"
    if found.st_mode & _OTHERS:
        return f"{path} is open to others (mode {stat.S_IMODE(found.st_mode):o})"
    return None
