"""The query that a command is given: a text, perhaps a name in it, or an alias; and parameters."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.options import Decorated, old_spelling, with_options
from omnigraph.cli.sources import STDIN, read_source, refuse_second_stdin
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.core.values import read_strict_json
from omnigraph.language.query_parser import parse_queries

_SOURCES = (
    click.option(
        "--name",
        "old_name",
        hidden=True,
        callback=old_spelling("--name", "give the name of the query without a flag"),
    ),
    click.option("--query", "query_path", metavar="FILE", help="The .gq file, or - for standard input."),
    click.option(
        "-e", "--query-string", "query_text", metavar="GQ", help="The text itself, instead of a file."
    ),
)
_PARAMS = (
    click.option("--params", "params_text", metavar="JSON", help="The parameters, as a JSON object."),
    click.option(
        "--params-file",
        "params_path",
        metavar="FILE",
        help="A file with the parameters, or - for standard input.",
    ),
)
_ALIAS = (
    click.option(
        "--alias", metavar="ALIAS", help="A query by its alias; words besides it are its arguments."
    ),
)


@dataclass(frozen=True, slots=True)
class GivenParams:
    """What the command line says about parameters; no file has been read yet."""

    text: str | None
    path: str | None

    def check_usage(self) -> None:
        """Refuse two sets of parameters.

        Raises:
            click.UsageError: both ways are used.
        """
        if self.text is not None and self.path is not None:
            raise click.UsageError("--params and --params-file cannot be combined")

    def read(self) -> Mapping[str, object] | None:
        """Return the parameters as given.

        Raises:
            BadRequest: the text is not a JSON object.
        """
        text = self.text if self.path is None else read_source(self.path).text
        if text is None:
            return None
        flag = "--params" if self.path is None else f"--params-file {self.path}"
        try:
            params = read_strict_json(text)
        except ValueError as error:
            raise BadRequest(f"{flag} is not JSON: {error}") from error
        if not isinstance(params, dict):
            raise BadRequest(f'{flag} must be a JSON object, such as {{"code": "VGR-1"}}')
        return params


@dataclass(frozen=True, slots=True)
class GivenQuery:
    """What the command line says about a query; no file has been read yet."""

    words: Sequence[str]
    query_path: str | None
    query_text: str | None
    given_params: GivenParams
    alias: str | None = None

    @property
    def name(self) -> str | None:
        """The name of a query; with an alias, words are its arguments."""
        return self.words[0] if self.words and self.alias is None else None

    @property
    def has_source(self) -> bool:
        """Whether there is a text, as a file or on the command line."""
        return self.query_path is not None or self.query_text is not None

    def check_usage(self) -> None:
        """Refuse combinations that make no sense.

        Raises:
            click.UsageError: two sources, two names, two sets of parameters, `-` twice, or a graph as the
                name.
        """
        _refuse_graph_as_name(self.name)
        if self.alias is None and len(self.words) > 1:
            raise click.UsageError(f"Got unexpected extra argument ({' '.join(self.words[1:])})")
        if self.alias is not None and self.has_source:
            raise click.UsageError("--alias has its own text: leave --query and -e out")
        if self.query_path is not None and self.query_text is not None:
            raise click.UsageError("--query and -e cannot be combined: give the text with one of them")
        self.given_params.check_usage()
        refuse_second_stdin(self.query_path or "", self.given_params.path or "")

    def source(self, roots: Sequence[Path] = ()) -> Source:
        """Return the text, checked to parse: its errors are reported before a graph is opened.

        Raises:
            BadRequest: the file cannot be read, here or below one of the roots.
            ParseError: the text is not a valid query file.
        """
        if self.query_text is not None:
            source = Source(self.query_text)
            parse_queries(source)
            return source
        return query_source(str(self.query_path), roots)

    def params(self) -> Mapping[str, object] | None:
        """Return the parameters as given.

        Raises:
            BadRequest: the text is not a JSON object.
        """
        return self.given_params.read()


def query_source(path: str, roots: Sequence[Path]) -> Source:
    """Return a query file, checked to parse: as it is named, or else below the first root that has it.

    Raises:
        BadRequest: it is nowhere; the places are listed.
        ParseError: it is not a valid query file.
    """
    source = read_source(_found(path, roots))
    parse_queries(source)
    return source


def query_options(command: Decorated) -> Decorated:
    """Add what defines a query or its alias; the command gets it as one value, `given`."""
    words = click.argument("words", nargs=-1, metavar="[NAME | ARGS...]")
    return with_options(_collecting(command), (words, *_SOURCES, *_ALIAS, *_PARAMS))


def text_options(command: Decorated) -> Decorated:
    """Add what defines a query by its text alone; the command gets it as one value, `given`."""
    words = click.argument("words", nargs=-1, metavar="[NAME]")
    return with_options(_collecting(command), (words, *_SOURCES, *_PARAMS))


def params_options(command: Decorated) -> Decorated:
    """Add the flags of parameters; the command gets them as `params_text` and `params_path`."""
    return with_options(command, _PARAMS)


def _collecting(command: Decorated) -> Decorated:
    @wraps(command)
    def collected(
        *,
        words: Sequence[str],
        old_name: str | None,
        query_path: str | None,
        query_text: str | None,
        params_text: str | None,
        params_path: str | None,
        alias: str | None = None,
        **others: Any,  # noqa: ANN401 - what click takes
    ) -> object:
        if old_name is not None:
            if words:
                raise click.UsageError("the query is named twice, by NAME and --name: give NAME alone")
            words = (old_name,)
        params = GivenParams(params_text, params_path)
        return command(given=GivenQuery(words, query_path, query_text, params, alias), **others)

    return collected


def _found(path: str, roots: Sequence[Path]) -> str:
    if path == STDIN or not roots or Path(path).is_absolute() or os.path.lexists(path):
        return path
    places = [root / path for root in roots]
    for place in places:
        if os.path.lexists(place):
            return str(place)
    searched = ", ".join([path, *map(str, places)])
    raise BadRequest(f"no query file {path}; searched {searched}")


def _refuse_graph_as_name(name: str | None) -> None:
    """Refuse the address of a graph where the name of a query belongs."""
    if name is None:
        return
    from omnigraph.core.regular_file import GRAPH_MARK

    if "://" in name or name.endswith(".omni") or os.path.isdir(f"{name}/{GRAPH_MARK}"):  # noqa: PTH112 - a name that the system refuses is not a graph
        raise click.UsageError(f"'{name}' is a graph, not the name of a query: write --store {name}")
