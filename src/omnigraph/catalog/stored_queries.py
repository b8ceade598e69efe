"""Stored queries: a registry of named queries, and whether they still fit a schema.

A registry is a value. It is made once, from files, and its queries are the declarations of those files. What
is wrong with it is part of it: a registry with breakages can be listed, and is refused by those who would
run it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.catalog.lint import check_query
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.params import ResultField
from omnigraph.core.errors import BadRequest, QueryNotFound
from omnigraph.core.span import Source
from omnigraph.language import query_ast as ast

_LISTED_MAX = 20  # breakages in one message; `omnigraph queries validate` prints all


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One query of a registry; one that is not exposed can be called and is not listed.

    `digest` is that of the file that declares it.
    """

    name: str
    tool_name: str
    is_mutation: bool
    parameters: tuple[ResultField, ...]
    description: str | None
    instruction: str | None
    source: Source = field(repr=False)
    declaration: ast.Query = field(repr=False, compare=False)
    digest: str
    is_exposed: bool = True

    @property
    def kind(self) -> str:
        """What it is called in messages: a read or a mutation."""
        return "mutation" if self.is_mutation else "read"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about one query of a registry, or about a file that declares none."""

    query: str
    message: str


@dataclass(frozen=True, slots=True)
class RegistryCheck:
    """What a check against a schema found; with breakages the registry cannot be served."""

    breakages: tuple[Remark, ...]
    warnings: tuple[Remark, ...] = ()

    def require_whole(self, where: str) -> None:
        """Refuse a registry that is broken.

        Raises:
            BadRequest: naming the queries and what is wrong with each.
        """
        if not self.breakages:
            return
        told = [f"{found.query}: {found.message}" for found in self.breakages[:_LISTED_MAX]]
        if len(self.breakages) > _LISTED_MAX:
            told.append(f"and {len(self.breakages) - _LISTED_MAX} more")
        raise BadRequest(f"the stored queries of {where} cannot be used:\n" + "\n".join(told))


@dataclass(frozen=True, slots=True)
class StoredQueries:
    """A registry by name, in the order of names, and what is wrong with its files."""

    queries: Mapping[str, StoredQuery] = field(default_factory=dict)
    breakages: tuple[Remark, ...] = ()

    @property
    def listed(self) -> tuple[StoredQuery, ...]:
        """The queries that a catalog shows."""
        return tuple(query for query in self.queries.values() if query.is_exposed)

    def find(self, name: str) -> StoredQuery:
        """Return a query by its name, whether it is listed or not.

        Raises:
            QueryNotFound: there is none; those that are listed are named.
        """
        found = self.queries.get(name)
        if found is None:
            raise QueryNotFound(name, known=[query.name for query in self.listed])
        return found

    def check(self, catalog: Catalog) -> RegistryCheck:
        """Return what is wrong with the files, and with the queries under a schema."""
        breakages, warnings = list(self.breakages), list[Remark]()
        for query in self.queries.values():
            result, _ = check_query(query.declaration, catalog, query.source)
            if result.error is not None:
                breakages.append(Remark(query.name, str(result.error)))
            warnings += [Remark(query.name, text) for text in result.warnings]
        return RegistryCheck(tuple(breakages), tuple(warnings))


NO_STORED_QUERIES = StoredQueries()
