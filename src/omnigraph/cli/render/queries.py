"""Stored queries as text."""

from collections.abc import Iterator, Sequence

from omnigraph.catalog.stored_queries import RegistryCheck, Remark, StoredQueries
from omnigraph.cli.render.columns import count
from omnigraph.cli.steering import on_lines, on_one_line
from omnigraph.client.answer import Document


def query_lines(entries: Sequence[Document], breakages: Sequence[Remark] = ()) -> Iterator[str]:
    """Yield a line for each query of a catalog, then what is wrong with its files."""
    yield from map(_line, entries)
    yield from map(_broken, breakages)
    if not entries and not breakages:
        yield "no stored queries"


def check_lines(found: StoredQueries, check: RegistryCheck) -> Iterator[str]:
    """Yield what a check found, then how much was checked."""
    yield from map(_broken, check.breakages)
    for warning in check.warnings:
        yield f"WARN  {on_one_line(warning.query)}: {on_lines(warning.message)}"
    broken, warned = count(len(check.breakages), "breakage"), count(len(check.warnings), "warning")
    yield f"{count(len(found.queries), 'stored query', 'stored queries')}: {broken}, {warned}"


def _line(query: Document) -> str:
    parameters = ", ".join(map(_parameter, query["params"]))
    kind = "mutation" if query["mutation"] else "read"
    hidden = "" if query["mcp_expose"] else " (not listed)"
    told = "" if query.get("description") is None else f"  {on_one_line(query['description'])}"
    return f"{on_one_line(query['name'])}({parameters}) {kind}{hidden}{told}"


def _parameter(parameter: Document) -> str:
    kind = parameter["kind"]
    if parameter.get("item_kind") is not None:
        kind = f"[{parameter['item_kind']}]"
    elif parameter.get("vector_dim") is not None:
        kind = f"vector({parameter['vector_dim']})"
    return on_one_line(f"${parameter['name']}: {kind}{'?' if parameter['nullable'] else ''}")


def _broken(breakage: Remark) -> str:
    return f"ERROR {on_one_line(breakage.query)}: {on_lines(breakage.message)}"
