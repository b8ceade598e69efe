"""Copies of the control objects of branches, beside the manifests that these name, on a local disk.

E1  Only the control object says that a branch exists; the copy says that one did, and what it said.
E2  Deleting a branch ends its copy first: a copy that has not ended and has no control object is damage.
"""

from pathlib import Path
from urllib.parse import unquote

from omnigraph.core.damage import GraphDamaged
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.object_store import StorageAdapter
from omnigraph.storage.quarantine import translated

COPY = "_branch"
ENDED = "_branch_ended"


class BranchCopies:
    """The copies of one graph; nothing at all on an object store, which loses no objects."""

    def __init__(self, adapter: StorageAdapter, root: Path | None) -> None:
        """Take the graph's control files, and its folder if it lies on a disk."""
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
        copy = f"{_folder(ref)}/{COPY}"
        if self._root is not None and self._adapter.exists(copy):
            self._adapter.rename_text(copy, f"{_folder(ref)}/{ENDED}")

    def end_of(self, control: str) -> None:
        """End the copies of a control object that is damaged, and so names no ref.

        Raises:
            StorageError: the system failed.
        """
        root = self._root
        if root is None:
            return
        with translated("look for the copy of a damaged branch"):
            copies = [copy for copy in self._copies(root) if _control_of(copy) == control]
        for copy in copies:
            self.end(copy.parent.name)

    def refuse_lost(self) -> None:
        """Make sure that no control object was lost.

        Raises:
            GraphDamaged: one is gone although its branch was never deleted.
            StorageError: the folders cannot be read.
        """
        root = self._root
        if root is None:
            return
        with translated("look for lost branches"):
            controls = [
                (copy, control) for copy in self._copies(root) if (control := _control_of(copy)) is not None
            ]
            lost = [(copy, control) for copy, control in controls if not (root / control).exists()]
        for copy, control in lost:
            raise GraphDamaged(
                file=control,
                reason=f"is missing, and branch '{unquote(Path(control).stem)}' with it",
                dataset=str(Path(control).parent),
                remedy=f"put the file back; its text is in '{copy.relative_to(root)}' below the first line",
            )

    def _copies(self, root: Path) -> list[Path]:
        return sorted((root / MANIFEST_DIR / "tree").glob(f"*/{COPY}"))


def _control_of(copy: Path) -> str | None:
    """Return the control object that a copy is of, which its first line says; none for a damaged copy."""
    first = copy.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    is_one = first.count("/") == 1 and first.startswith("__branches/") and first.endswith(".json")
    return first if is_one else None


def _folder(ref: str) -> str:
    return f"{MANIFEST_DIR}/tree/{ref}"
