"""The object that says that a place is becoming a copy of a graph, from the first file to the last.

H1  Whoever copies has the journal: it is created on condition that it is absent, and taken over by a
    compare-and-swap. Of two runs the later one goes on; the earlier one notices before it shows anything.
H2  A run goes on with what an earlier one left only if it copies the same graph with the same choice.
H3  A place with a journal and without a version of main's manifest is no graph, and says what it is.
H4  `init` and a copy each say that they have begun before they look for the other: of two, one notices.
"""

import json
from dataclasses import asdict, dataclass, replace

from omnigraph.core.errors import CloneUnfinished, ConflictError
from omnigraph.core.values import read_json
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.version_file import VERSIONS_DIR, version_of_file_name

JOURNAL = "__clone.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Journal:
    """What is copied to a place, and by which run."""

    source: str
    genesis: str
    branches: tuple[str, ...] | None
    at: str | None
    depth: int | None
    run: str

    def is_of_same(self, other: "Journal") -> bool:
        """Say whether both runs make the same copy (H2); the source may have been moved."""
        return replace(self, source=other.source, run=other.run) == other

    def to_text(self) -> str:
        """Return the text of the object."""
        return json.dumps({"format": FORMAT} | asdict(self), ensure_ascii=False)


def take_journal(adapter: StorageAdapter, root: GraphRoot, mine: Journal) -> bool:
    """Become the run that copies to a place (H1); return whether it goes on with an earlier one's files.

    Raises:
        CloneUnfinished: another copy was begun here (H2).
        ConflictError: another run takes the place at this moment.
    """
    if adapter.write_text_if_absent(JOURNAL, mine.to_text()):
        return False
    found = adapter.read_text_versioned(JOURNAL)
    if found is None:
        raise ConflictError(f"another run has just ended at {root.uri}: try again")
    earlier = _decode(found[0], root)
    if not earlier.is_of_same(mine):
        reason = "was begun with another source or other options"
        raise CloneUnfinished(place=root.uri, source=earlier.source, reason=reason)
    is_mine = earlier.run == mine.run  # a store may repeat a request
    if not is_mine and not adapter.write_text_if_match(JOURNAL, mine.to_text(), found[1]):
        check_journal(adapter, root, mine)
    return not is_mine


def check_journal(adapter: StorageAdapter, root: GraphRoot, mine: Journal) -> None:
    """Make sure that this run is still the one that copies (H1).

    Raises:
        ConflictError: another one has taken over.
    """
    if adapter.read_text_if_exists(JOURNAL) != mine.to_text():
        raise ConflictError(f"another run has taken over the copy at {root.uri}: this one has ended")


def refuse_unfinished(adapter: StorageAdapter, root: GraphRoot) -> None:
    """Refuse a place that is to be a graph and is none yet (H3).

    Raises:
        CloneUnfinished: it is one.
    """
    text = adapter.read_text_if_exists(JOURNAL)
    if text is not None and not is_shown(adapter):
        raise CloneUnfinished(place=root.uri, source=_decode(text, root).source)


def is_shown(adapter: StorageAdapter) -> bool:
    """Say whether main's manifest has a version: it is the last file of a copy."""
    names = adapter.list_dir(f"{MANIFEST_DIR}/{VERSIONS_DIR}")
    return any(version_of_file_name(name) is not None for name in names)


def _decode(text: str, root: GraphRoot) -> Journal:
    try:
        document = read_json(text)
        if document.pop("format") != FORMAT:
            raise ValueError("another format")
        branches = document.pop("branches")
        return Journal(branches=None if branches is None else tuple(branches), **document)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CloneUnfinished(
            place=root.uri, source="another graph", reason=f"has a '{JOURNAL}' that this build cannot read"
        ) from error
