"""The query that a command is given: a text, perhaps a name in it, and parameters."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, NoReturn

import click

from omnigraph.cli.options import Decorated, with_options
from omnigraph.cli.sources import read_source, refuse_second_stdin
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.core.values import read_json
from omnigraph.language.query_parser import parse_queries

NO_ALIAS = "is not in this version: give the text with --query or -e"
_OPTIONS = (
    click.argument("name", required=False),
    click.option("--query", "query_path", metavar="FILE", help="The .gq file, or - for standard input."),
    click.option(
        "-e", "--query-string", "query_text", metavar="GQ", help="The text itself, instead of a file."
    ),
    click.option("--params", "params_text", metavar="JSON", help="The parameters, as a JSON object."),
    click.option(
        "--params-file",
        "params_path",
        metavar="FILE",
        help="A file with the parameters, or - for standard input.",
    ),
)


@dataclass(frozen=True, slots=True)
class GivenQuery:
    """What the command line says about a query; no file has been read yet."""

    name: str | None
    query_path: str | None
    query_text: str | None
    params_text: str | None
    params_path: str | None

    @property
    def has_source(self) -> bool:
        """Whether there is a text, as a file or on the command line."""
        return self.query_path is not None or self.query_text is not None

    def check_usage(self) -> None:
        """Refuse combinations that make no sense.

        Raises:
            click.UsageError: two sources, two sets of parameters, `-` twice, or a graph as the name.
        """
        _refuse_graph_as_name(self.name)
        if self.query_path is not None and self.query_text is not None:
            raise click.UsageError("--query and -e cannot be combined: give the text with one of them")
        if self.params_text is not None and self.params_path is not None:
            raise click.UsageError("--params and --params-file cannot be combined")
        refuse_second_stdin(self.query_path or "", self.params_path or "")

    def source(self) -> Source:
        """Return the text, checked to parse: its errors are reported before a graph is opened.

        Raises:
            BadRequest: the file cannot be read.
            ParseError: the text is not a valid query file.
        """
        source = Source(self.query_text) if self.query_text is not None else read_source(str(self.query_path))
        parse_queries(source)
        return source

    def params(self) -> Mapping[str, object] | None:
        """Return the parameters as given.

        Raises:
            BadRequest: the text is not a JSON object.
        """
        text = self.params_text if self.params_path is None else read_source(self.params_path).text
        if text is None:
            return None
        flag = "--params" if self.params_path is None else f"--params-file {self.params_path}"
        try:
            params = read_json(text, constant=_refuse_constant, members=_distinct)
        except ValueError as error:
            raise BadRequest(f"{flag} is not JSON: {error}") from error
        if not isinstance(params, dict):
            raise BadRequest(f'{flag} must be a JSON object, such as {{"code": "VGR-1"}}')
        return params


def query_options(command: Decorated) -> Decorated:
    """Add the argument and flags that define a query; the command gets them as one value, `given`."""

    @wraps(command)
    def collected(
        *,
        name: str | None,
        query_path: str | None,
        query_text: str | None,
        params_text: str | None,
        params_path: str | None,
        **others: Any,  # noqa: ANN401 - what click takes
    ) -> object:
        given = GivenQuery(name, query_path, query_text, params_text, params_path)
        return command(given=given, **others)

    return with_options(collected, _OPTIONS)


def _refuse_graph_as_name(name: str | None) -> None:
    """Refuse the address of a graph where the name of a query belongs."""
    if name is None:
        return
    from omnigraph.history.manifest_rows import MANIFEST_DIR

    if "://" in name or name.endswith(".omni") or os.path.isdir(f"{name}/{MANIFEST_DIR}"):  # noqa: PTH112 - a name that the system refuses is not a graph
        raise click.UsageError(f"'{name}' is a graph, not the name of a query: write --store {name}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _distinct(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a key is given twice")
    return found
