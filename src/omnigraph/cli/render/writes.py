"""What loads, mutations and index builds did, as text."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from omnigraph.cli.render.columns import columns, count
from omnigraph.cli.render.errors import causes_of
from omnigraph.client.answer import Document

if TYPE_CHECKING:
    from omnigraph.operations.ensure_indices import IndexResult
    from omnigraph.operations.index_status import TableIndexes
    from omnigraph.operations.load.load import LoadResult
    from omnigraph.validate.violations import Violation

REASONS_MAX = 10  # of rows that were left out; all of them go to the file of --rejects


def render_mutation(changed: Document) -> str:
    """Return the counts and the commit."""
    nodes, edges = count(changed["affected_nodes"], "node"), count(changed["affected_edges"], "edge")
    what = f"{changed['query_name']} on {changed['branch']}: {nodes} and {edges} affected"
    if changed["commit"] is None:
        return f"{what}, nothing to commit"
    return f"{what}\ncommit {changed['commit']['graph_commit_id']}"


def render_load(loaded: Document) -> str:
    """Return the rows of each table, and the commits."""
    branch, commit = loaded["branch"], loaded["commit"]
    if commit is None and not loaded.get("dry_run"):
        what = "every row was left out" if loaded.get("rejected_rows") else "no records in the input"
        return f"{what}: nothing loaded into {branch}"
    tables = [(table["table_key"], table["rows_loaded"]) for table in loaded["tables"]]
    total = count(sum(rows for _, rows in tables), "row")
    title = f"loaded {total} into {branch} ({loaded['mode']})"
    if commit is None:
        title = f"{total} would be loaded into {branch} ({loaded['mode']}); nothing was written"
    table = columns(["table", "rows"], [[key, str(rows)] for key, rows in tables], numbers=frozenset({1}))
    lines = [title, "", table]
    if loaded.get("vectors"):
        lines += ["", f"{count(loaded['vectors'], 'vector')} made from texts"]
    if loaded["branch_created"]:
        lines.insert(0, f"created branch {branch} from {loaded['base_branch']}")
    if commit is not None:
        lines += ["", f"commit {commit['graph_commit_id']}"]
    if loaded["index_commit"] is not None:
        lines.append(f"indexes built in commit {loaded['index_commit']['graph_commit_id']}")
    return "\n".join(lines)


def render_rejected(result: "LoadResult") -> str:
    """Return a warning: how many rows were left out, and the first reasons."""
    title = f"warning: {count(result.rejected_rows, 'row')} left out"
    causes, follows = causes_of(result.violations)
    shown = []
    for violation in causes[:REASONS_MAX]:
        shown += [f"  {_place(violation)}: {violation.message}", *follows.lines(violation)]
    more = [] if len(causes) <= REASONS_MAX else ["  ..."]
    return "\n".join([title, *shown, *more])


def render_cleared(loaded: Document) -> str:
    """Return a warning: the properties of existing rows that an upsert set to null."""
    verb = "would clear" if loaded.get("dry_run") else "cleared"
    listed = [
        f"  {item['table_key'].partition(':')[2]}.{item['property']}: {count(item['rows'], 'existing row')}"
        for item in loaded["cleared"]
    ]
    title = f"warning: the load {verb} values that its input lacks (mode merge replaces whole rows)"
    return "\n".join([title, *listed])


def _place(violation: "Violation") -> str:
    name = violation.file_name
    return f"line {violation.line}" if name is None else f"{name}:{violation.line}"


def render_index_result(result: "IndexResult") -> str:
    """Return what was built."""
    if result.commit is None:
        return "nothing to build"
    return f"indexes built in commit {result.commit.graph_commit_id}"


def render_pending(indexes: Sequence[Document]) -> str:
    """Return a warning: every index that is missing, and why."""
    listed = [f"  {index['table_key']} {index['property']}: {index['reason']}" for index in indexes]
    return "\n".join([f"warning: {count(len(indexes), 'index', 'indexes')} pending", *listed])


def render_index_status(tables: "Iterable[TableIndexes]") -> str:
    """Return one line per index."""
    rows = [
        [table.table_key, index.property, index.kind, index.coverage, index.reason or ""]
        for table in tables
        for index in table.indexes
    ]
    return columns(["table", "property", "kind", "coverage", "reason"], rows)
