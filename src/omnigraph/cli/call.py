"""One query to run, from everything that may say which: a text, a name, an alias, the configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli.given_query import GivenParams, GivenQuery, query_source
from omnigraph.cli.target import Addressed
from omnigraph.client.scope import GraphAddress
from omnigraph.core.errors import BadRequest, UnsupportedError

if TYPE_CHECKING:
    from omnigraph.client.access import QueryCall, StoredCall
    from omnigraph.config.operator_file import OperatorAlias
    from omnigraph.config.project_file import ProjectAlias

Kind = Literal["read", "mutation"]
_VERBS: dict[Kind, str] = {"read": "query", "mutation": "mutate"}


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """Where to run what; the kind is None where only the server knows it."""

    target: GraphAddress
    what: "QueryCall | StoredCall"
    kind: Kind | None
    branch: str | None = None
    format: str | None = None


def prepare(given: GivenQuery, addressed: Addressed, kind: Kind) -> PreparedCall:
    """Return the call that a command line describes; files are read, and no graph is opened.

    Raises:
        click.UsageError: no query is given.
        BadRequest: a file or an alias is not there, or does not fit.
        UnsupportedError: a stored query is asked of a graph without a server.
    """
    from omnigraph.client.access import QueryCall, StoredCall

    if given.alias is not None:
        return prepare_alias(given.alias, given.words, given.given_params, addressed, kind)
    if given.has_source:
        target = addressed.resolve()
        source = given.source(addressed.settings.query_roots)
        return PreparedCall(target, QueryCall(source, given.name, given.params()), kind)
    if given.name is None:
        what = "query" if kind == "read" else "mutation"
        raise click.UsageError(f"give the {what} with either --query FILE or -e TEXT")
    target = addressed.resolve()
    _require_server(target, given.name)
    return PreparedCall(target, StoredCall(given.name, given.params(), kind == "mutation"), kind)


def prepare_alias(
    name: str, words: Sequence[str], params: GivenParams, addressed: Addressed, kind: Kind | None
) -> PreparedCall:
    """Return the call that an alias and its arguments describe.

    Raises:
        BadRequest: there is no such alias, it is of the other kind, or its file or graph is not there.
    """
    from omnigraph.cli.aliases import bound, find_alias
    from omnigraph.config.project_file import ProjectAlias

    alias = find_alias(name, addressed.settings)
    values = bound(alias, words, params.read())
    if isinstance(alias, ProjectAlias):
        return _of_project(alias, values, addressed, kind)
    return _of_operator(alias, values, addressed, kind)


def _of_project(
    alias: "ProjectAlias", params: dict[str, object], addressed: Addressed, kind: Kind | None
) -> PreparedCall:
    from omnigraph.client.access import QueryCall
    from omnigraph.client.scope import of_project

    if kind is not None and kind != alias.kind:
        raise BadRequest(f"alias '{alias.name}' is a {alias.kind}: use omnigraph {_VERBS[alias.kind]}")
    configuration = addressed.settings
    is_named = alias.graph is not None and not addressed.by_flag
    named = of_project(str(alias.graph), configuration) if is_named else None
    target = addressed.resolve() if named is None else addressed.guard(named)
    source = query_source(alias.query, configuration.query_roots)
    return PreparedCall(
        target, QueryCall(source, alias.query_name, params), alias.kind, alias.branch, alias.format
    )


def _of_operator(
    alias: "OperatorAlias", params: dict[str, object], addressed: Addressed, kind: Kind | None
) -> PreparedCall:
    from omnigraph.client.access import StoredCall
    from omnigraph.client.scope import on_server

    if alias.server is not None and not addressed.by_flag:
        target = on_server(alias.server, addressed.graph or alias.graph, addressed.settings)
    else:
        target = addressed.resolve()
    _require_server(target, alias.query)
    is_mutation = None if kind is None else kind == "mutation"
    return PreparedCall(target, StoredCall(alias.query, params, is_mutation), kind, None, alias.format)


def _require_server(target: GraphAddress, name: str) -> None:
    if not target.is_served:
        raise UnsupportedError(
            f"'{name}' without a text is a stored query, and stored queries need a server: "
            "give the text with --query FILE or -e TEXT"
        )
