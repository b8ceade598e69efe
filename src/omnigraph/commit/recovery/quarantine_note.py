"""The note in a quarantine folder that was filled by somebody's decision: who decided what, and when."""

import json
from pathlib import Path

from omnigraph.commit.parts import Parts
from omnigraph.storage.quarantine import QUARANTINE_DIR

NOTE = "repair.json"
FORMAT = 1


def write_note(parts: Parts, quarantine_id: str, **members: object) -> None:
    """Write the note, on the disk before anything is moved.

    Raises:
        StorageError: the system failed; nothing was moved.
    """
    note = {"format": FORMAT, "created_at": parts.clock()} | members
    parts.adapter.write_text(f"{QUARANTINE_DIR}/{quarantine_id}/{NOTE}", json.dumps(note, indent=1))


def noted(folder: Path) -> dict[str, object] | None:
    """Return the note of a quarantine folder; none where a power cut, and no decision, filled it."""
    try:
        document = json.loads((folder / NOTE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def refs_in_quarantine(parts: Parts) -> frozenset[str]:
    """Return the forks that only versions in quarantine name; without them these could not be put back."""
    root = parts.local_root
    if root is None or not (root / QUARANTINE_DIR).is_dir():
        return frozenset()
    notes = [noted(folder) for folder in (root / QUARANTINE_DIR).iterdir() if folder.is_dir()]
    found = [note.get("refs") for note in notes if note is not None]
    return frozenset(str(ref) for refs in found if isinstance(refs, list) for ref in refs)
