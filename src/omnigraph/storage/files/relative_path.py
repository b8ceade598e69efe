"""Names that were read from a file and become part of a path: checked by their form before any use.

L1  A name that passes is below the folder it is joined to, whatever the file that it came from says.
L2  Any other is an `InvariantViolation`: no writer of ours wrote it, so nothing goes on from there.
"""

import re

from omnigraph.core.errors import InvariantViolation

_REF = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_REF_BYTES_MAX = 200


def check_ref(ref: str, where: str) -> str:
    """Return the name of a Lance ref: one segment of letters, digits, `.`, `-` and `_`.

    Raises:
        InvariantViolation: it is not one (L2).
    """
    if _REF.fullmatch(ref) is None or ".." in ref or len(ref) > _REF_BYTES_MAX:
        raise InvariantViolation(f"{where} names {ref[:120]!r}, which is not a ref: it leads elsewhere")
    return ref


def check_relative_path(path: str, where: str) -> str:
    """Return a path below the graph root.

    Raises:
        InvariantViolation: it is absolute, leads upwards, or has an empty part or a NUL (L2).
    """
    is_plain = "\0" not in path and "\\" not in path and "://" not in path
    if not is_plain or any(part in {"", ".", ".."} for part in path.split("/")):
        raise InvariantViolation(f"{where} names {path[:120]!r}, which is not a path inside the graph")
    return path
