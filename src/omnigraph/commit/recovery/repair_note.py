"""The note that a repair leaves beside the quarantine: who decided to give up what, and when."""

import json
from pathlib import Path

from omnigraph.commit.parts import Parts
from omnigraph.core.regular_file import read_control_file
from omnigraph.core.values import read_json
from omnigraph.storage.damage.quarantine import QUARANTINE_DIR, translated

NOTE = "repair.json"
FORMAT = 1


def write_note(parts: Parts, operation_id: str, **members: object) -> None:
    """Write the note, on the disk before anything is given up.

    Raises:
        StorageError: the system failed; nothing was given up.
    """
    note = {"format": FORMAT, "created_at": parts.clock()} | members
    parts.adapter.write_text(f"{QUARANTINE_DIR}/{operation_id}/{NOTE}", json.dumps(note, indent=1))


def refs_given_up(parts: Parts) -> frozenset[str]:
    """Return the forks that only what was given up names; without them there would be no way back.

    Raises:
        StorageError: the quarantine cannot be read.
    """
    root = parts.local_root
    if root is None or not (root / QUARANTINE_DIR).is_dir():
        return frozenset()
    with translated("read the quarantine"):
        found = [_refs(folder) for folder in (root / QUARANTINE_DIR).iterdir() if folder.is_dir()]
    return frozenset(ref for refs in found for ref in refs)


def _refs(folder: Path) -> list[str]:
    """Return the forks in a note; none if a power cut, not a decision, filled the folder."""
    try:
        document = read_json(read_control_file(folder / NOTE))
    except (FileNotFoundError, ValueError):
        return []
    refs = document.get("refs") if isinstance(document, dict) else None
    return [str(ref) for ref in refs] if isinstance(refs, list) else []
