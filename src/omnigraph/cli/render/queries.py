"""Stored queries as text."""

from collections.abc import Iterator

from omnigraph.catalog.params import ResultField
from omnigraph.catalog.stored_queries import RegistryCheck, Remark, StoredQueries, StoredQuery
from omnigraph.cli.render.columns import count
from omnigraph.cli.steering import on_lines, on_one_line


def query_lines(found: StoredQueries) -> Iterator[str]:
    """Yield a line for each query, then what is wrong with the files."""
    for query in found.queries.values():
        yield _line(query)
    yield from map(_broken, found.breakages)
    if not found.queries and not found.breakages:
        yield "no stored queries"


def check_lines(found: StoredQueries, check: RegistryCheck) -> Iterator[str]:
    """Yield what a check found, then how much was checked."""
    yield from map(_broken, check.breakages)
    for warning in check.warnings:
        yield f"WARN  {on_one_line(warning.query)}: {on_lines(warning.message)}"
    broken, warned = count(len(check.breakages), "breakage"), count(len(check.warnings), "warning")
    yield f"{count(len(found.queries), 'stored query', 'stored queries')}: {broken}, {warned}"


def _line(query: StoredQuery) -> str:
    parameters = ", ".join(map(_parameter, query.parameters))
    hidden = "" if query.is_exposed else " (not listed)"
    told = "" if query.description is None else f"  {on_one_line(query.description)}"
    return f"{query.name}({parameters}) {query.kind}{hidden}{told}"


def _parameter(parameter: ResultField) -> str:
    kind = parameter.kind
    if parameter.item_kind is not None:
        kind = f"[{parameter.item_kind}]"
    elif parameter.vector_dim is not None:
        kind = f"vector({parameter.vector_dim})"
    return f"${parameter.name}: {kind}{'?' if parameter.nullable else ''}"


def _broken(breakage: Remark) -> str:
    return f"ERROR {on_one_line(breakage.query)}: {on_lines(breakage.message)}"
