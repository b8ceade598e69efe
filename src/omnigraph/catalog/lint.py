"""Linting a query file: every query is checked, and what the file as a whole leaves out is reported."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.bind import bind
from omnigraph.catalog.bound import BoundMutation, BoundQuery, BoundUpdate
from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.catalog.params import Operation, describe
from omnigraph.core.diagnostics import Severity
from omnigraph.core.errors import BadRequest
from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Source
from omnigraph.language import query_ast as ast
from omnigraph.language.query_parser import parse_queries

UNPARSABLE_FILE = "Q000"
NEVER_UPDATED = "L201"
_HARD_CODED = "hard-coded mutation: it has no parameters, so it can only ever do this one thing"


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result for one query; `error` is what its check raised."""

    name: str
    kind: str
    warnings: tuple[str, ...] = ()
    error: BadRequest | None = None
    operation: Operation | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the result, leaving out what is unset."""
        document: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "status": "error" if self.error else "ok",
        }
        if self.warnings:
            document["warnings"] = list(self.warnings)
        if self.error is not None:
            document["error"] = str(self.error)
        if self.operation is not None:
            document["operation"] = self.operation.to_json()
        return document


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the file as a whole."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the finding, leaving out what is unset."""
        document: dict[str, Any] = {
            "severity": str(self.severity),
            "code": self.code,
            "message": self.message,
        }
        if self.type_name is not None:
            document["type_name"] = self.type_name
        if self.property is not None:
            document["property"] = self.property
        if self.query_names:
            document["query_names"] = list(self.query_names)
        return document


@dataclass(frozen=True, slots=True)
class LintReport:
    """What lint says about one file; `failure` is why the file does not parse."""

    schema_source: Mapping[str, str]
    query_path: str
    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]
    failure: ParseError | None = None

    @property
    def errors(self) -> int:
        """Queries that fail the check, and error findings."""
        return sum(result.error is not None for result in self.results) + self._count(Severity.ERROR)

    @property
    def warnings(self) -> int:
        """Warnings of queries and of the file."""
        return sum(len(result.warnings) for result in self.results) + self._count(Severity.WARNING)

    @property
    def infos(self) -> int:
        """Findings that need no action."""
        return self._count(Severity.INFO)

    @property
    def status(self) -> str:
        """`error` iff there is an error."""
        return "error" if self.errors else "ok"

    def to_json(self) -> dict[str, Any]:
        """Return the report as every surface prints it."""
        return {
            "status": self.status,
            "schema_source": dict(self.schema_source),
            "query_path": self.query_path,
            "queries_processed": len(self.results),
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self.infos,
            "results": [result.to_json() for result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
        }

    def _count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)


def lint(
    catalog: Catalog, source: Source, *, query_path: str, schema_source: Mapping[str, str]
) -> LintReport:
    """Check a whole query file; its errors are reported, never raised."""
    try:
        file = parse_queries(source)
    except ParseError as error:
        return unreadable(error, query_path=query_path, schema_source=schema_source)
    results: list[QueryResult] = []
    valid: list[tuple[str, BoundQuery]] = []
    for query in file.queries:
        result, bound = check_query(query, catalog, source)
        results.append(result)
        if bound is not None:
            valid.append((query.name.text, bound))
    order = list(Severity)
    findings = sorted(
        _never_updated(valid),
        key=lambda f: (order.index(f.severity), f.type_name or "", f.property or "", f.message),
    )
    return LintReport(schema_source, query_path, tuple(results), tuple(findings))


def unreadable(error: ParseError, *, query_path: str, schema_source: Mapping[str, str]) -> LintReport:
    """Return the report for a file that cannot be read as text."""
    finding = Finding(Severity.ERROR, UNPARSABLE_FILE, str(error))
    return LintReport(schema_source, query_path, (), (finding,), error)


def check_query(query: ast.Query, catalog: Catalog, source: Source) -> tuple[QueryResult, BoundQuery | None]:
    """Check one query; its error is part of the result, never raised."""
    is_mutation = isinstance(query.body, ast.Mutation)
    name, kind = query.name.text, "mutation" if is_mutation else "read"
    warnings = (_HARD_CODED,) if is_mutation and not query.parameters else ()
    try:
        bound = bind(query, catalog, source)
    except BadRequest as error:
        return QueryResult(name, kind, warnings, error), None
    return QueryResult(name, kind, warnings, operation=describe(bound, catalog)), bound


def _never_updated(valid: Iterable[tuple[str, BoundQuery]]) -> Iterator[Finding]:
    """Yield the nullable properties that the file could update and never does."""
    types: dict[str, NodeType] = {}
    names: dict[str, set[str]] = {}
    assigned: dict[str, set[str]] = {}
    for query_name, bound in valid:
        for statement in bound.statements if isinstance(bound, BoundMutation) else ():
            if isinstance(statement, BoundUpdate):
                type_name = statement.type.name
                types[type_name] = statement.type
                names.setdefault(type_name, set()).add(query_name)
                assigned.setdefault(type_name, set()).update(a.name for a in statement.assignments)
    for type_name, node in types.items():
        for item in node.properties.values():
            is_settable = item.type.nullable and item.embed is None and item.name not in (node.key or ())
            if is_settable and item.name not in assigned[type_name]:
                message = f"{type_name}.{item.name} exists in schema but no update query sets it"
                updating = tuple(sorted(names[type_name]))
                yield Finding(Severity.WARNING, NEVER_UPDATED, message, type_name, item.name, updating)
