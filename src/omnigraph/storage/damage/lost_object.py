"""Which object that a version of a table names is gone from its store, or has another length.

On a disk files are opened and their closing magic is compared (`quarantine.version_damage`). In a store the
lengths of all objects come with one listing, and none is opened.
"""

from posixpath import normpath

from omnigraph.storage.control.object_store import list_sizes, read_bytes
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.version_file import HollowContent, decode_version, version_file_name
from omnigraph.storage.tables.handle import TableAddress, ref_path


def lost_object(address: TableAddress, version: int) -> tuple[str, str] | None:
    """Return an object that a version needs, by its path below the table or fork, and its fault.

    `None` says that all are there, or that the version itself is not: then it was removed.

    Raises:
        StorageError: the store failed, which says nothing about its objects.
    """
    table = GraphRoot.parse(address.uri)  # a fork lies below its table, and so do the files that they share
    folder = ref_path(".", address.ref)
    data = read_bytes(table, normpath(f"{folder}/{version_file_name(version)}"))
    if data is None:
        return None
    try:
        decoded = decode_version(data)
    except HollowContent as content:
        return version_file_name(version), str(content)
    lengths = list_sizes(table)
    for file in (*decoded.files, *decoded.shared):
        found = lengths.get(normpath(f"{folder}/{file.path}"))
        if found is None:
            return file.path, "is missing"
        if file.size is not None and found != file.size:
            return file.path, f"has {found} of {file.size} bytes"
    return None
