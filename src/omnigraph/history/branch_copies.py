"""Copies of the control objects of branches, next to the manifests that these name, on a local disk.

E1  Only the control object says that a branch exists; the copy says that it did, and what the object said.
E2  Deleting a branch ends its copy first: a copy that has not ended and has no control object is damage.
E3  A branch was certainly deleted if its copy has ended, or its manifest is gone; a branch that had no copy
    gets an ended one.
"""

from pathlib import Path
from urllib.parse import unquote

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.regular_file import read_control_file
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.damage.quarantine import translated
from omnigraph.storage.tables.handle import ref_path

COPY = "_branch"
ENDED = "_branch_ended"


class BranchCopies:
    """The copies of one graph; nothing at all on an object store, which loses no objects."""

    def __init__(self, adapter: StorageAdapter, root: Path | None) -> None:
        """Take the graph's control files, and its folder if it is on a disk."""
        self._adapter, self._root = adapter, root

    def keep(self, ref: str, control: str, text: str) -> None:
        """Keep the text of the control object of a ref.

        Raises:
            StorageError: the system failed; the branch exists all the same.
        """
        if self._root is not None:
            self._adapter.write_text(f"{_folder(ref)}/{COPY}", f"{control}\n{text}")

    def end(self, ref: str) -> None:
        """Say that a branch is about to be deleted (E2).

        Raises:
            StorageError: the system failed.
        """
        if self._root is None:
            return
        copy, ended = f"{_folder(ref)}/{COPY}", f"{_folder(ref)}/{ENDED}"
        if self._adapter.exists(copy):
            self._adapter.rename_text(copy, ended)
        elif self._adapter.exists(_folder(ref)):
            self._adapter.write_text(ended, "")  # E3

    def revive(self, ref: str) -> None:
        """Say that a branch could not be deleted after all.

        Raises:
            StorageError: the system failed.
        """
        ended = f"{_folder(ref)}/{ENDED}"
        if self._root is not None and self._adapter.exists(ended):
            self._adapter.rename_text(ended, f"{_folder(ref)}/{COPY}")

    def end_of(self, control: str) -> None:
        """End the copies of a damaged control object, which names no ref.

        Raises:
            StorageError: the system failed.
        """
        root = self._root
        if root is None:
            return
        with translated("look for the copy of a damaged branch"):
            refs = [ref for ref, copy in self._copies(root) if _control_of(copy) == control]
        for ref in refs:
            self.end(ref)

    def refuse_lost(self, control: str | None = None) -> None:
        """Make sure that no control object was lost, or not this one.

        Raises:
            GraphDamaged: one is missing although its branch was never deleted.
            StorageError: the folders cannot be read.
        """
        for ref, named in self.lost():
            if control in {None, named}:
                raise _lost(named, "is missing", ref, has_copy=True)

    def lost(self) -> list[tuple[str, str]]:
        """Return the refs whose control objects are missing although their branches were never deleted (E2).

        Each with the name of the control object.

        Raises:
            StorageError: the folders cannot be read.
        """
        root = self._root
        if root is None:
            return []
        with translated("look for lost branches"):
            found = [(ref, copy, _control_of(copy)) for ref, copy in self._copies(root)]
            return [
                (ref, named)
                for ref, copy, named in found
                # A deletion ends the copy before it removes the object: one that is under way leaves neither.
                if named is not None and not (root / named).exists() and copy.exists()
            ]

    @staticmethod
    def place(ref: str) -> str:
        """Return the graph-relative name of the copy of a ref's control object."""
        return f"{_folder(ref)}/{COPY}"

    def refuse_unended(self, ref: str, control: str) -> None:
        """Make sure that a branch whose control object does not name its ref was deleted (E3).

        Raises:
            GraphDamaged: it was not, as far as can be known.
            StorageError: its folder cannot be read.
        """
        if self._root is None:
            return
        folder = _folder(ref)
        if self._adapter.exists(f"{folder}/{ENDED}") or not self._adapter.exists(folder):
            return
        reason = f"names another manifest than '{ref}'" if self._adapter.exists(control) else "is missing"
        raise _lost(control, reason, ref, has_copy=self._adapter.exists(f"{folder}/{COPY}"))

    def _copies(self, root: Path) -> list[tuple[str, Path]]:
        """Return the refs that have a copy, with it; those inside others are known by their names alone."""
        tree, nested = root / MANIFEST_DIR / "tree", root / MANIFEST_DIR / "_refs" / "branches"
        refs = {copy.parent.name for copy in tree.glob(f"*/{COPY}")}
        refs |= {unquote(file.stem) for file in nested.glob("*%2F*.json")}
        return [(ref, tree / ref / COPY) for ref in sorted(refs) if (tree / ref / COPY).exists()]


def _control_of(copy: Path) -> str | None:
    """Return the control object of a copy, which is named in its first line; None for a damaged copy."""
    first = read_control_file(copy).decode(errors="replace").partition("\n")[0]
    is_one = first.count("/") == 1 and first.startswith("__branches/") and first.endswith(".json")
    return first if is_one else None


def _lost(control: str, reason: str, ref: str, *, has_copy: bool) -> GraphDamaged:
    """Return the error for a branch that was lost, not deleted."""
    folder = _folder(ref)
    if has_copy:
        text = f"its text is in '{folder}/{COPY}' below the first line; rename that to '{ENDED}'"
    else:
        text = f"there is no copy of its text; make an empty file '{folder}/{ENDED}'"
    return GraphDamaged(
        file=control,
        reason=f"{reason}, and branch '{unquote(Path(control).stem)}' with it",
        dataset=str(Path(control).parent),
        remedy=f"put the file back; {text} to give the branch up instead",
    )


def _folder(ref: str) -> str:
    return ref_path(MANIFEST_DIR, ref)
