"""`verify`: everything about a graph that can be checked without changing it.

V1  Nothing is written and nothing is healed; a graph that does not open can still be verified.
V2  Files first, then manifests, schema and pins. A deep verification goes on with the rows and indexes of
    every branch, as its newest commit shows them, and with the files that nothing needs.
V3  Others may write meanwhile, and nothing that passes by itself is reported.
"""

from dataclasses import replace

from omnigraph.commit.parts import Parts
from omnigraph.core.errors import GraphNotFound
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.clone.journal import refuse_unfinished
from omnigraph.operations.open import make_parts
from omnigraph.operations.progress import TableProgressCallback, unseen
from omnigraph.operations.verify.contents import Contents
from omnigraph.operations.verify.files import compare_files
from omnigraph.operations.verify.history import check_history
from omnigraph.operations.verify.report import VerifyReport
from omnigraph.operations.verify.unreferenced import unreferenced_files
from omnigraph.storage.control.graph_files import graph_files
from omnigraph.storage.control.uri import refuse_file


def verify(
    parts: Parts, *, branch: str | None = None, deep: bool = False, progress: TableProgressCallback = unseen
) -> VerifyReport:
    """Check a graph, or one branch of it (V1, V2).

    Raises:
        BranchNotFound: there is no such branch.
        StorageError: something cannot be read, which says nothing about what is in it.
    """
    compared = compare_files(parts, branch, progress)
    look = check_history(parts, compared.branches)
    report = VerifyReport(
        compared.branches,
        compared.files,
        compared.unread,
        compared.repeated,
        (*compared.findings(), *look.findings),
        pending=look.pending,
    )
    if not deep:
        return report
    contents = Contents(parts, progress)
    for found in look.branches:
        contents.check(found)
    return replace(
        report,
        findings=(*report.findings, *contents.findings),
        untold=contents.untold,
        is_deep=True,
        rows_checked=contents.rows_checked,
        unreferenced=unreferenced_files(graph_files(parts.root), compared.needed) if branch is None else (),
    )


def verify_place(
    uri: str, *, branch: str | None = None, deep: bool = False, progress: TableProgressCallback = unseen
) -> VerifyReport:
    """Verify the graph at a place without opening it (V1).

    Raises:
        GraphNotFound: there is no graph at this place.
        CloneUnfinished: there is a part of a copy of one.
        BranchNotFound: there is no such branch.
        StorageError: something cannot be read, which says nothing about what is in it.
    """
    parts = make_parts(uri)
    refuse_file(parts.root)
    refuse_unfinished(parts.adapter, parts.root)
    if not parts.adapter.exists(MANIFEST_DIR):
        raise GraphNotFound(f"no graph at {parts.root.uri}: nothing to verify")
    return verify(parts, branch=branch, deep=deep, progress=progress)
