"""Names of branches, actors and states, and names of Python that stand for those of a graph."""

import re

from omnigraph.core.errors import BadRequest

RESERVED_ACTOR_PREFIX = "omnigraph:"  # of the engine's own commits
BRANCH_NAME_BYTES_MAX = 200  # file systems take 255 bytes for a name; the rest is suffixes
_NOT_PLAIN = re.compile(r"[^a-z0-9._-]")


def branch_name_flaw(name: str) -> str | None:
    """Return why no branch can have a name, which has no blanks around it; None if one can."""
    if not name:
        return "a branch name must not be blank"
    for segment in name.split("/"):
        is_made_of_them = all(character.isalnum() or character in "._-" for character in segment)
        if not segment or segment in {".", ".."} or not is_made_of_them:
            rule = "segments of letters, digits, '.', '-' and '_', with one '/' between two of them"
            return f"branch name '{name}' is not allowed: use {rule}"
    if len(encoded_branch_name(name)) > BRANCH_NAME_BYTES_MAX:
        return f"branch name '{name[:40]}…' has more than {BRANCH_NAME_BYTES_MAX} bytes when encoded"
    return None


def encoded_branch_name(name: str) -> str:
    """Return the name of a branch as part of a file name, where letter case may not count."""
    return _NOT_PLAIN.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)


def names_of(attribute: str) -> tuple[str, ...]:
    """Return what an attribute or a class may stand for: itself, or a word that Python keeps for itself."""
    return (attribute, attribute[:-1]) if attribute.endswith("_") and len(attribute) > 1 else (attribute,)


def refuse_both(branch: str | None, snapshot: object) -> None:
    """Refuse a state that is named twice.

    Raises:
        BadRequest: both a branch and a snapshot are named.
    """
    if branch is not None and snapshot is not None:
        raise BadRequest("a branch and a snapshot cannot be combined: a snapshot implies its branch")
