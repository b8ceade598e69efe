"""Which branches exist: one control object each, and nothing else decides.

N1  A branch other than main exists exactly while its control object does. Creating it is creating that
    object, on condition that it is absent; deleting it is removing that object.
N2  A control object names the manifest ref of one incarnation: a name that was deleted and created again has
    another ref, so an old handle cannot mistake one for the other.
N3  An object that cannot be understood is a loud error, and never taken for absent; so is one that names a
    ref elsewhere, or whose own name is not that of any branch.
N4  On an object store a control object is never removed, because no store removes on a condition: a name that
    was used again would lose its new branch to a late request. A branch ends by a compare-and-swap that
    leaves an empty object, which a new branch of that name replaces. Before that it is ending, at a version
    of its manifest: whether it does is decided by what follows that version (`commit/recovery/ending`).
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
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
from omnigraph.core.names import branch_name_flaw, encoded_branch_name
from omnigraph.core.temporal import moment_of_micros
from omnigraph.core.values import read_json, shown
from omnigraph.history.branch_copies import BranchCopies
from omnigraph.history.identity import MAIN, MAIN_BRANCH, BranchIdentity
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.files.version_file import check_ref

BRANCHES_DIR = "__branches"
SCHEMA_APPLY_LOCK = "__schema_apply_lock__"  # a control object next to those of branches, never a branch
RESERVED = frozenset({MAIN, SCHEMA_APPLY_LOCK})
SLUG_MAX = 40
ENDED = ""  # the text of an ended control object: its length tells it from others in a listing (N4)
LISTINGS_MAX = 3  # of a folder whose objects vanish while they are read
FORMAT = 1
_MEMBERS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "name": str,
    "ref": str,
    "parent_branch": (str, type(None)),
    "parent_manifest_version": int,
    "created_at": int,
    "actor_id": (str, type(None)),
}
_OPTIONAL: dict[str, type | tuple[type, ...]] = {"writer_epoch": int, "ending_version": int}
_ALL = _MEMBERS | _OPTIONAL


@dataclass(frozen=True, slots=True)
class Branch:
    """What the control object of a live branch says: its ref, and what it was created from (None is main)."""

    name: str
    ref: str
    parent_branch: str | None
    parent_manifest_version: int
    created_at_micros: int
    actor_id: str | None
    ending_version: int | None = None  # of its manifest: if nothing is published on it, the branch ends (N4)

    @property
    def created_at(self) -> datetime:
        """When it was created, in UTC."""
        return moment_of_micros(self.created_at_micros)

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
        given = {name.removesuffix("_micros"): value for name, value in asdict(self).items()}
        members = {"format": FORMAT} | given
        if self.ending_version is None:
            del members["ending_version"]
        return json.dumps(members, ensure_ascii=False)


def trimmed_name(name: object) -> str:
    """Return what a call gave as the name of a branch, without surrounding blanks.

    Raises:
        BadRequest: it is not a text.
    """
    if not isinstance(name, str):
        what = "None" if name is None else f"{shown(name)} ({type(name).__name__})"
        raise BadRequest(f"the name of a branch must be a text, not {what}")
    return name.strip()


def given_name(branch: object) -> str:
    """Return the name of the branch that a call means: the one that it gives, or main.

    Raises:
        BadRequest: it gives something that is no text.
    """
    return MAIN if branch is None else trimmed_name(branch)


def source_name(branch: object) -> str:
    """Return the name of the branch that another is made from: as `given_name`, fit to be part of a path.

    Raises:
        BadRequest: it is no text.
        BranchNotFound: no branch could have this name.
    """
    name = given_name(branch)
    if name != MAIN and not _is_encodable(name):
        raise BranchNotFound(name)
    return name


def check_branch_name(name: str) -> str:
    """Return a name for a new branch, without surrounding blanks.

    Raises:
        BadRequest: it is reserved, too long, or not made of segments of letters, digits, `.`, `-` and `_`.
    """
    trimmed = trimmed_name(name)
    if trimmed in RESERVED:
        raise BadRequest(f"branch name '{trimmed}' is reserved")
    flaw = branch_name_flaw(trimmed)
    if flaw is not None:
        raise BadRequest(flaw)
    return trimmed


def control_file(name: str) -> str:
    """Return the graph-relative name of the control object of a branch."""
    return f"{BRANCHES_DIR}/{encoded_branch_name(name)}.json"


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
        return None if text is None or self._is_ended(text) else _decode(name, text)

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
        if found is None or not self._is_ended(found[0]):
            return False
        return self._adapter.write_text_if_match(branch.file, branch.to_text(), found[1])

    def delete(self, branch: Branch) -> None:
        """End a branch as it was read (N1); on an object store, nobody may have changed it since (N4).

        Raises:
            BranchInUse: another process is using or deleting it.
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

    def change(self, before: Branch, after: Branch) -> bool:
        """Replace the control object of a branch of an object store, unless it no longer says what was read.

        Raises:
            StorageError: it is unknown what it says.
        """
        return self._replace(before, after.to_text())

    def _end(self, branch: Branch) -> None:
        """Replace the control object with an ended one, unless it no longer says what was read (N4)."""
        try:
            is_ended = self._replace(branch, ENDED)
            hit("branch_delete.control_ack_lost")
        except Exception:
            if self.is_live(branch.identity):
                raise
            return
        if not is_ended and self.is_live(branch.identity):
            raise BranchInUse(branch.name, "another process is using or deleting it")

    def _replace(self, before: Branch, text: str) -> bool:
        found = self._adapter.read_text_versioned(before.file)
        if found is not None and found[0] == text:
            return True  # a repeated request, or somebody else who did the same
        if found is None or self._is_ended(found[0]) or _decode(before.name, found[0]) != before:
            return False
        is_done = self._adapter.write_text_if_match(before.file, text, found[1])
        return is_done or self._adapter.read_text_if_exists(before.file) == text

    def delete_unreadable(self, name: str) -> None:
        """End a branch whose control object cannot be understood, and so names nothing (N1).

        Raises:
            StorageError: it may still exist.
        """
        self.copies.end_of(control_file(name))
        self._adapter.delete(control_file(name))

    def _listed(self) -> Iterable[str]:
        listed = self._adapter.list_lengths(BRANCHES_DIR)
        files = [
            file for file, length in listed.items() if file.endswith(".json") and not self._is_empty(length)
        ]
        names = {unquote(file.removesuffix(".json")): file for file in files}
        names.pop(SCHEMA_APPLY_LOCK, None)
        for name, file in names.items():
            if not _is_encodable(name) or control_file(name) != f"{BRANCHES_DIR}/{file}":
                raise InvariantViolation(f"'{BRANCHES_DIR}/{file}' is not the control object of any branch")
        return names.keys()

    def _is_ended(self, text: str) -> bool:
        """Return whether a control object is that of an ended branch; on a disk an empty one is damaged."""
        return self._root is None and text == ENDED

    def _is_empty(self, length: int) -> bool:
        return self._root is None and length == len(ENDED)


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
    document.pop("writer_epoch", None)  # what builds wrote that knew one writer at a time
    document["created_at_micros"] = document.pop("created_at")
    return Branch(**document)


def _is_encodable(name: str) -> bool:
    """Return whether a branch of this name could exist; otherwise there is no need to look at the store."""
    try:
        check_branch_name(name)
    except BadRequest:
        return False
    return True
