"""The tokens of servers, in a file that only its owner can read.

C1  A file that its group or others may read is not used at all: whoever shares the machine may know it.
C2  It is replaced by rename, and is never more readable than its owner's, also while it is written.
C3  No error shows what is in it.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import BEARER_TOKEN_BYTES_MAX, SETTINGS_BYTES_MAX
from omnigraph.core.regular_file import open_regular

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_HEAD = re.compile(r"\[([^\]]*)\]")

_TOKEN = re.compile(r"[!-~]+")  # what a header can carry without being cut or continued


def read_token(path: Path, server: str) -> str | None:
    """Return the token of a server, or None if the file has none for it, or does not exist.

    Raises:
        BadRequest: others may read the file (C1), it cannot be read, or is not a list of tokens.
    """
    return _tokens(path, _lines(path)).get(server)


def check_token(token: str) -> str:
    """Return a token without the blanks around it.

    Raises:
        BadRequest: it is empty, too long, or has blanks or signs that a header cannot carry (C3).
    """
    text = token.strip()
    if len(text) > BEARER_TOKEN_BYTES_MAX:
        raise BadRequest(f"a token has at most {BEARER_TOKEN_BYTES_MAX} characters, and this one has more")
    if _TOKEN.fullmatch(text) is None:
        raise BadRequest("a token is one word of printable ASCII, and this is not one")
    return text


def write_token(path: Path, server: str, token: str) -> None:
    """Keep the token of a server, in place of the one that is kept; other lines stay as they are.

    Raises:
        BadRequest: the file cannot be read or written, or others may read it (C1).
    """
    lines = list(_without(_lines(path), server))
    if lines and lines[-1]:
        lines.append("")
    _replace(path, [*lines, f"[{server}]", f"token = {check_token(token)}"])


def remove_token(path: Path, server: str) -> bool:
    """Forget the token of a server, and return whether there was one; without one, nothing happens.

    Raises:
        BadRequest: the file cannot be read or written, or others may read it (C1).
    """
    lines = _lines(path)
    if server not in _tokens(path, lines):
        return False
    _replace(path, list(_without(lines, server)))
    return True


def _lines(path: Path) -> list[str]:
    try:
        with open_regular(path) as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & _OTHERS:
                raise BadRequest(f"others may read the tokens in {path}: run chmod 600 {path}")
            content = file.read(SETTINGS_BYTES_MAX + 1)
        if len(content) > SETTINGS_BYTES_MAX:
            raise BadRequest(f"{path} has more than {SETTINGS_BYTES_MAX} bytes")
        return content.decode().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadRequest(f"{path} is not UTF-8") from None


def _tokens(path: Path, lines: list[str]) -> dict[str, str]:
    tokens: dict[str, str] = {}
    server: str | None = None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith(("#", ";")):
            continue
        if (head := _HEAD.fullmatch(text)) is not None:
            server = head[1].strip()
            continue
        key, equals, value = text.partition("=")
        if not equals or server is None:
            raise BadRequest(f"{path}:{number}: expected [server], or token = … below one")
        if key.strip() == "token":
            tokens[server] = check_token(value)
    return tokens


def _without(lines: list[str], server: str) -> Iterator[str]:
    """Yield the lines that do not belong to the section of a server."""
    is_theirs = False
    for line in lines:
        if (head := _HEAD.fullmatch(line.strip())) is not None:
            is_theirs = head[1].strip() == server
        if not is_theirs:
            yield line


def _replace(path: Path, lines: list[str]) -> None:
    """Write the file beside its place and rename it (C2)."""
    text = "".join(f"{line}\n" for line in lines)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            beside.unlink()
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise BadRequest(f"cannot write {path}: {error.strerror}") from error
