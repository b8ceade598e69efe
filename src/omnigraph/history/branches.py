"""Which branches exist: one control object each, and nothing else decides.

N1  A branch other than main exists exactly while its control object does. Creating it is creating that
    object, on condition that it is absent; deleting it is removing that object.
N2  A control object names the manifest ref of one incarnation: a name that was deleted and created again has
    another ref, so an old handle cannot mistake one for the other.
N3  An object that cannot be understood is a loud error, and never taken for absent; so is one that names a
    ref elsewhere, or whose own name is not that of any branch.
N4  On an object store a branch ends by a compare-and-swap that replaces its control object with an ended one,
    which is not a branch; removing that is tidying. A writer puts the number of its lease into the object
    before it first publishes on the branch: a process that looked before that can no longer end the branch.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from omnigraph.core.errors import (
    BadRequest,
    BranchInUse,
    BranchNotFound,
    InvariantViolation,
    OmnigraphError,
    StorageError,
)
from omnigraph.core.failpoint import hit
from omnigraph.core.values import read_json
from omnigraph.history.branch_copies import BranchCopies
from omnigraph.history.identity import MAIN, MAIN_BRANCH, BranchIdentity
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.files.version_file import check_ref

BRANCHES_DIR = "__branches"
SCHEMA_APPLY_LOCK = "__schema_apply_lock__"  # a control object next to those of branches, never a branch
RESERVED = frozenset({MAIN, SCHEMA_APPLY_LOCK})
NAME_BYTES_MAX = 200  # file systems take 255 bytes for a name; the rest is suffixes
SLUG_MAX = 40
CLAIMS_MAX = 5  # tries to write into a control object that others also write into
ENDED_HINT = (
    ".ended"  # an object next to a control object that may be an ended one: a listing alone cannot tell
)
LISTINGS_MAX = 3  # of a folder whose objects vanish while they are read
FORMAT = 1
_PLAIN = re.compile(r"[a-z0-9._-]")
_MEMBERS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "name": str,
    "ref": str,
    "parent_branch": (str, type(None)),
    "parent_manifest_version": int,
    "created_at": int,
    "actor_id": (str, type(None)),
}
_OPTIONAL: dict[str, type | tuple[type, ...]] = {"writer_epoch": int}
_ALL = _MEMBERS | _OPTIONAL


@dataclass(frozen=True, slots=True)
class Branch:
    """What the control object of a live branch says: its ref, and what it was created from (None is main)."""

    name: str
    ref: str
    parent_branch: str | None
    parent_manifest_version: int
    created_at: int
    actor_id: str | None
    writer_epoch: int | None = None  # of the last lease under which it was written; on object stores (N4)

    @property
    def identity(self) -> BranchIdentity:
        """The branch without its origin."""
        return BranchIdentity(self.name, self.ref)

    @property
    def file(self) -> str:
        """The graph-relative name of the control object."""
        return control_file(self.name)

    def to_text(self) -> str:
        """Return the text of the control object."""
        members = {"format": FORMAT} | asdict(self)
        if self.writer_epoch is None:
            del members["writer_epoch"]
        return json.dumps(members, ensure_ascii=False)

    def to_ended_text(self) -> str:
        """Return the text of the control object of this branch once it is deleted (N4)."""
        return json.dumps({"format": FORMAT, "name": self.name, "ref": self.ref, "deleted": True})


def trimmed_name(name: object) -> str:
    """Return what a call gave as the name of a branch, without surrounding blanks.

    Raises:
        BadRequest: it is not a text.
    """
    if not isinstance(name, str):
        what = "None" if name is None else f"{name!r:.60} ({type(name).__name__})"
        raise BadRequest(f"the name of a branch must be a text, not {what}")
    return name.strip()


def given_name(branch: object) -> str:
    """Return the name of the branch that a call means: the one that it gives, or main.

    Raises:
        BadRequest: it gives something that is no text.
    """
    return MAIN if branch is None else trimmed_name(branch)


def check_branch_name(name: str) -> str:
    """Return a name for a new branch, without surrounding blanks.

    Raises:
        BadRequest: it is reserved, too long, or not made of segments of letters, digits, `.`, `-` and `_`.
    """
    trimmed = trimmed_name(name)
    if trimmed in RESERVED:
        raise BadRequest(f"branch name '{trimmed}' is reserved")
    if not trimmed:
        raise BadRequest("a branch name must not be blank")
    for segment in trimmed.split("/"):
        is_made_of_them = all(character.isalnum() or character in "._-" for character in segment)
        if not segment or segment in {".", ".."} or not is_made_of_them:
            rule = "segments of letters, digits, '.', '-' and '_', with one '/' between two of them"
            raise BadRequest(f"branch name '{trimmed}' is not allowed: use {rule}")
    if len(_encode(trimmed)) > NAME_BYTES_MAX:
        raise BadRequest(f"branch name '{trimmed[:40]}…' has more than {NAME_BYTES_MAX} bytes when encoded")
    return trimmed


def control_file(name: str) -> str:
    """Return the graph-relative name of the control object of a branch."""
    return f"{BRANCHES_DIR}/{_encode(name)}.json"


def mint_ref(branch: str, ulid: str) -> str:
    """Return the name of a fresh ref for a branch: readable by people, used once."""
    slug = re.sub(r"[^a-z0-9]", "-", branch.lower())[:SLUG_MAX]
    return f"{slug}-{ulid}"


class Branches:
    """The control objects of one graph."""

    def __init__(self, adapter: StorageAdapter, root: Path | None = None) -> None:
        """Take the graph's control files, and its folder if it is on a disk."""
        self._adapter, self._root = adapter, root

    @property
    def copies(self) -> BranchCopies:
        """The copies of the control objects."""
        return BranchCopies(self._adapter, self._root)

    def find(self, name: str) -> Branch | None:
        """Return a live branch, or None.

        Raises:
            InvariantViolation: its control object is damaged (N3).
        """
        text = self._adapter.read_text_if_exists(control_file(name)) if _is_encodable(name) else None
        return None if text is None or _ended_ref(text) is not None else _decode(name, text)

    def ref_of(self, name: str) -> str | None:
        """Return the ref of a live branch, or None."""
        found = self.find(name)
        return None if found is None else found.ref

    def resolve(self, name: str) -> BranchIdentity:
        """Return the branch that a name currently means.

        Raises:
            BranchNotFound: there is no such branch.
        """
        return MAIN_BRANCH if name == MAIN else self.require(name).identity

    def confirm(self, branch: BranchIdentity) -> None:
        """Make sure that a branch still exists; main always does.

        Raises:
            BranchNotFound: it is gone, or was replaced by another of the same name.
        """
        if not self.is_live(branch):
            raise BranchNotFound(branch.name)

    def is_live(self, branch: BranchIdentity) -> bool:
        """Return whether this very incarnation of a branch exists (N2); main always does."""
        if branch.is_main:
            return True
        found = self.find(branch.name)
        return found is not None and found.ref == branch.ref

    def require(self, name: str, ref: str | None = None) -> Branch:
        """Return a live branch; with a ref, only the incarnation that has it (N2).

        Raises:
            BranchNotFound: there is no such branch, or it has been replaced by another.
        """
        found = self.find(name)
        if found is None or (ref is not None and found.ref != ref):
            raise BranchNotFound(name)
        return found

    def claim(self, wanted: BranchIdentity, epoch: int) -> Branch:
        """Return a live branch that processes which looked at it before this writer can no longer end (N4).

        Raises:
            BranchNotFound: there is no such branch, or it has been replaced by another.
            StorageError: its control object changes too often.
        """
        name = wanted.name
        for _ in range(CLAIMS_MAX):
            found = self._adapter.read_text_versioned(control_file(name)) if _is_encodable(name) else None
            if found is None or _ended_ref(found[0]) is not None:
                raise BranchNotFound(name)
            branch = _decode(name, found[0])
            if branch.identity != wanted:
                raise BranchNotFound(name)
            if (branch.writer_epoch or 0) >= epoch:
                return branch
            claimed = replace(branch, writer_epoch=epoch)
            if self._adapter.write_text_if_match(branch.file, claimed.to_text(), found[1]):
                return claimed
        raise StorageError(f"the control object of branch '{name}' changes too often", kind="transient")

    def names(self) -> list[str]:
        """Return the names of all branches, including main, sorted; from one listing."""
        return sorted({MAIN, *self._listed()})

    def live(self) -> tuple[BranchIdentity, ...]:
        """Return every branch, main first, then by name.

        Raises:
            StorageError: as `all`.
        """
        return MAIN_BRANCH, *(branch.identity for branch in self.all())

    def all(self) -> tuple[Branch, ...]:
        """Return every branch except main, by name.

        Raises:
            StorageError: objects kept vanishing between the listing and being read.
        """
        for _ in range(LISTINGS_MAX):
            names = sorted(self._listed())
            found = [self.find(name) for name in names]
            live = tuple(branch for branch in found if branch is not None)
            if len(live) == len(names):
                return live
        raise StorageError("branches change too fast to be listed: try again", kind="transient")

    def readable(self) -> tuple[tuple[Branch, ...], tuple[tuple[str, OmnigraphError], ...]]:
        """Return the branches except main whose control objects can be read, and the names of the others.

        For callers that need not stop because of one damaged branch. A caller about to remove something for
        good uses `all`, where doubt is loud (N3).
        """
        found: list[Branch] = []
        unreadable: list[tuple[str, OmnigraphError]] = []
        for name in sorted(self._listed()):
            try:
                branch = self.find(name)
            except (InvariantViolation, StorageError) as error:
                unreadable.append((name, error))
            else:
                found += [] if branch is None else [branch]
        return tuple(found), tuple(unreadable)

    def create(self, branch: Branch) -> bool:
        """Make a branch exist, unless one of its name does (N1); return whether this one does now.

        Raises:
            StorageError: that is unknown; the control object cannot be read.
        """
        try:
            is_new = self._write_new(branch)
            hit("branch_create.control_ack_lost")
        except Exception:  # noqa: BLE001 - whatever failed, the question is whose object exists
            is_new = self.find(branch.name) is None and self._write_new(branch)
        return is_new or self.is_live(branch.identity)  # a store may repeat a request

    def _write_new(self, branch: Branch) -> bool:
        """Create the control object, or replace an ended one."""
        if self._adapter.write_text_if_absent(branch.file, branch.to_text()):
            return True
        found = self._adapter.read_text_versioned(branch.file)
        if found is None or _ended_ref(found[0]) is None:
            return False
        return self._adapter.write_text_if_match(branch.file, branch.to_text(), found[1])

    def delete(self, branch: Branch) -> None:
        """End a branch as it was read (N1); on an object store, no writer may have claimed it since (N4).

        Raises:
            BranchInUse: another writer is using it.
            StorageError: it may still exist.
        """
        if self._root is None:
            self._end(branch)
            return
        self.copies.end(branch.ref)
        try:
            self._adapter.delete(branch.file)
            hit("branch_delete.control_ack_lost")
        except Exception:
            if self.is_live(branch.identity):
                self.copies.revive(branch.ref)
                raise

    def _end(self, branch: Branch) -> None:
        """Replace the control object with an ended one, unless it no longer says what was read (N4)."""
        found = self._adapter.read_text_versioned(branch.file)
        if found is None or _ended_ref(found[0]) == branch.ref:
            return
        is_same = _decode(branch.name, found[0]) == branch
        if is_same:
            self._adapter.write_text(_hint(branch.file), "")
            try:
                is_same = self._adapter.write_text_if_match(branch.file, branch.to_ended_text(), found[1])
                hit("branch_delete.control_ack_lost")
            except Exception:
                if self.is_live(branch.identity):
                    raise
                return
        if not is_same and self.is_live(branch.identity):  # a repeated request is refused, and has landed
            raise BranchInUse(branch.name, "another writer is using it")

    def remove_ended(self, branch: Branch) -> None:
        """Remove the ended control object of a branch; the caller has made sure of its lease (N4).

        Raises:
            StorageError: the store failed; what is left is not a branch.
        """
        if self._root is not None:
            return
        text = self._adapter.read_text_if_exists(branch.file)
        if text is not None and _ended_ref(text) == branch.ref:
            self._adapter.delete(branch.file)
        self._adapter.delete(_hint(branch.file))

    def delete_unreadable(self, name: str) -> None:
        """End a branch whose control object cannot be understood, and so names nothing (N1).

        Raises:
            StorageError: it may still exist.
        """
        self.copies.end_of(control_file(name))
        self._adapter.delete(control_file(name))

    def is_schema_apply_running(self) -> bool:
        """Return whether a schema change holds its lock."""
        return self._adapter.read_text_if_exists(control_file(SCHEMA_APPLY_LOCK)) is not None

    def _listed(self) -> Iterable[str]:
        listed = set(self._adapter.list_dir(BRANCHES_DIR))
        files = [
            file
            for file in listed
            if file.endswith(".json") and not (_hint(file) in listed and self._is_ended(file))
        ]
        names = {unquote(file.removesuffix(".json")): file for file in files}
        names.pop(SCHEMA_APPLY_LOCK, None)
        for name, file in names.items():
            if not _is_encodable(name) or control_file(name) != f"{BRANCHES_DIR}/{file}":
                raise InvariantViolation(f"'{BRANCHES_DIR}/{file}' is not the control object of any branch")
        return names.keys()

    def _is_ended(self, file: str) -> bool:
        text = self._adapter.read_text_if_exists(f"{BRANCHES_DIR}/{file}")
        return text is None or _ended_ref(text) is not None


def _hint(file: str) -> str:
    return file.removesuffix(".json") + ENDED_HINT


def _ended_ref(text: str) -> str | None:
    """Return the ref of the branch that an ended control object belonged to; None for any other text (N4)."""
    try:
        document = read_json(text)
    except ValueError:
        return None
    is_one = isinstance(document, dict) and document.get("deleted") is True
    return str(document.get("ref")) if is_one else None


def _decode(name: str, text: str) -> Branch:
    try:
        document = read_json(text)
    except ValueError as error:
        raise InvariantViolation(f"control object of branch '{name}' is not JSON") from error
    is_whole = isinstance(document, dict) and document.keys() | _OPTIONAL.keys() == _ALL.keys()
    if not is_whole or not all(isinstance(value, _ALL[key]) for key, value in document.items()):
        raise InvariantViolation(f"control object of branch '{name}' has missing or unknown members")
    if document.pop("format") != FORMAT:
        raise InvariantViolation(
            f"control object of branch '{name}' has a format that this build cannot read"
        )
    if document["name"] != name:
        raise InvariantViolation(f"control object of branch '{name}' names branch '{document['name']}'")
    check_ref(document["ref"], f"control object of branch '{name}'")
    return Branch(**document)


def _encode(name: str) -> str:
    return "".join(
        character if _PLAIN.fullmatch(character) else "".join(f"%{byte:02X}" for byte in character.encode())
        for character in name
    )


def _is_encodable(name: str) -> bool:
    """Return whether a branch of this name could exist; otherwise there is no need to look at the store."""
    try:
        check_branch_name(name)
    except BadRequest:
        return False
    return True
