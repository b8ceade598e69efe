"""Files that nothing needs: what writes that failed, writers that died and deleted branches left.

U1  They are no fault, and may belong to a write that is under way. Cleanup decides about them, not this list.
U2  Only data, deletion and index files are listed. Of a table that a branch shows, or showed, a file counts
    as referenced if any version that is still there names it, whether or not a branch needs that version.
"""

import re
from collections.abc import Iterable
from posixpath import normpath

from omnigraph.operations.verify.report import UnreferencedFile
from omnigraph.storage.control.graph_files import GraphFiles
from omnigraph.storage.files.version_file import (
    VERSIONS_DIR,
    HollowContent,
    decode_version,
    version_of_file_name,
)

_CONTENT = re.compile(r"(?P<dataset>(?:__manifest|nodes|edges)(?:/.+?)?)/(?:data|_deletions|_indices)/.+")


def unreferenced_files(files: GraphFiles, needed: frozenset[str]) -> tuple[UnreferencedFile, ...]:
    """Return the files that nothing needs, by path; `needed` are those that are known to be (U2).

    Raises:
        StorageError: the store failed.
    """
    sizes = files.sizes()
    content = {path: match["dataset"] for path in sizes if (match := _CONTENT.fullmatch(path)) is not None}
    shown = {path.partition(f"/{VERSIONS_DIR}/")[0] for path in needed if f"/{VERSIONS_DIR}/" in path}
    named = needed | _named(files, (path for path in sizes if path not in needed), shown)
    return tuple(UnreferencedFile(path, sizes[path]) for path in sorted(content) if path not in named)


def _named(files: GraphFiles, paths: Iterable[str], datasets: set[str]) -> set[str]:
    """Return what the versions of some datasets name that no branch needs."""
    named: set[str] = set()
    for path in paths:
        dataset, _, name = path.partition(f"/{VERSIONS_DIR}/")
        if dataset not in datasets or version_of_file_name(name) is None:
            continue
        found = files.read(path)
        try:
            version = None if found is None else decode_version(found)
        except HollowContent:
            continue  # it names nothing that can be known, and nobody needs it
        if version is not None:
            named.update(normpath(f"{dataset}/{file.path}") for file in (*version.files, *version.shared))
    return named
