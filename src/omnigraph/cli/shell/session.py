r"""What a session at the prompt knows, and what becomes of each thing that is typed.

H1  Running something yields lines and raises typed errors; it neither prints nor asks. A terminal and a pipe
    see the same.
H2  A declaration is kept under its name as soon as it parses, in place of an older one, and run if it has all
    its parameters.
H3  In the past nothing is written: a mutation is refused until `\at` goes back to the present.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from omnigraph.cli.reading import snapshot_of
from omnigraph.cli.render.describe import render_description
from omnigraph.cli.render.formats import LINES
from omnigraph.cli.render.writes import render_mutation
from omnigraph.cli.shell.statement import BARE_NAME, COMMAND_MARK, Declared, declared, is_call
from omnigraph.client.answer import ReadAnswer
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import read_strict_json
from omnigraph.language.query_ast import Mutation, Query
from omnigraph.wire.documents import mutation_document

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph

HELP = """\
Type a query, and Enter runs it when it is complete; an empty line ends it anyway.

  match { $c: Craft } return { $c.name }      a read
  insert Craft { code: "VGR-3" }              a mutation, as one commit
  query named($code: String) { … }            is kept under its name, and run if it needs no parameter
  named {"code": "VGR-1"}                     runs it, with parameters in addition to those of \\params

  \\branch [NAME]     read and write this branch; without a name, list the branches
  \\at [COMMIT]       read a past state; without a commit, go back to the present
  \\params [JSON]     set the parameters of queries; without JSON, show them
  \\explain QUERY     show how a read would be carried out
  \\schema            print the schema
  \\describe TYPE     show the properties of a type, and what they hold
  \\queries           list what is kept in this session
  \\format [NAME]     table, kv, csv, jsonl or json
  \\help              this
  \\quit              end; so does Ctrl-D
"""
COMMANDS = ("at", "branch", "describe", "explain", "format", "help", "params", "queries", "quit", "schema")
FORMATS = (*LINES, "json")
WORDS_TO_LEAVE = frozenset({"exit", "quit", "q", "bye"})  # what other shells are left with


class Quit(Exception):
    """The session is over."""


@dataclass(slots=True)
class Session:
    """One session: the graph, and what is chosen for the next queries."""

    graph: "Graph"
    actor: str | None = None
    branch: str = "main"
    at: str | None = None
    format: str = "table"
    params: Mapping[str, object] = field(default_factory=dict)
    kept: dict[str, Declared] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where queries go, for the prompt."""
        return self.branch if self.at is None else f"{self.branch}@{self.at}"

    def run(self, text: str) -> Iterator[str]:
        """Yield the lines of the answer to what was typed (H1).

        Raises:
            OmnigraphError: what was typed is wrong, or failed; the session goes on.
            Quit: it is the end.
        """
        typed = text.strip()
        if typed.startswith(COMMAND_MARK):
            name, _, rest = typed[1:].partition(" ")
            yield from self._command(name.strip(), rest.strip())
        elif typed and is_call(typed):
            yield from self._call(typed)
        elif typed:
            yield from self._declare(declared(typed))

    # Queries

    def _declare(self, given: Declared) -> Iterator[str]:
        """Keep declarations, and run the ones that can be run (H2)."""
        for query in given.queries:
            name = query.name.text
            if name != BARE_NAME:
                self.kept[name] = given
            missing = [
                one.name for one in query.parameters if one.name not in self.params and not one.type.nullable
            ]
            if missing:
                needed = ", ".join(f'"{name}": …' for name in missing)
                yield f"kept {name}; run it with: {name} {{{needed}}}"
            else:
                yield from self._run_query(given, query, self.params)

    def _call(self, typed: str) -> Iterator[str]:
        name, brace, rest = typed.partition("{")
        given, query = self._kept(name.strip())
        params = {**self.params, **_object(brace + rest)} if brace else self.params
        yield from self._run_query(given, query, params)

    def _run_query(self, given: Declared, query: Query, params: Mapping[str, object]) -> Iterator[str]:
        wanted = {one.name for one in query.parameters}
        unknown = [name for name in params if name not in wanted and name not in self.params]
        if unknown:
            raise BadRequest(f"{query.name.text} has no parameter ${unknown[0]}")
        fitting = {name: value for name, value in params.items() if name in wanted}
        name = query.name.text
        if isinstance(query.body, Mutation):
            if self.at is not None:
                raise BadRequest("the past cannot be changed: \\at goes back to the present")  # H3
            result = self.graph.mutate(given.source, name, fitting, branch=self.branch, actor=self.actor)
            yield from render_mutation(mutation_document(result, None)).splitlines()
            return
        branch = self.branch if self.at is None else None
        found = self.graph.query(given.source, name, fitting, branch=branch, snapshot=snapshot_of(self.at))
        if self.format == "json":
            yield from json.dumps(found.to_json(), indent=2, ensure_ascii=False).splitlines()
        else:
            yield from LINES[self.format](ReadAnswer.of(found))

    def _kept(self, name: str) -> tuple[Declared, Query]:
        given = self.kept.get(name)
        if given is None:
            known = f": {', '.join(sorted(self.kept))}" if self.kept else ""
            meant = "; \\quit ends the session" if name in WORDS_TO_LEAVE else ""
            raise BadRequest(f"no query '{name}' is kept in this session{known}{meant}")
        return given, next(query for query in given.queries if query.name.text == name)

    # Commands

    def _command(self, name: str, rest: str) -> Iterator[str]:
        match name:
            case "help" | "?":
                yield from HELP.splitlines()
            case "quit" | "q":
                raise Quit
            case "branch":
                yield from self._choose_branch(rest)
            case "at":
                yield from self._choose_moment(rest)
            case "params":
                self.params = _object(rest) if rest else self.params
                yield json.dumps(self.params, ensure_ascii=False)
            case "format":
                yield self._choose_format(rest)
            case "queries":
                yield from sorted(self.kept) or ["nothing is kept yet"]
            case "schema":
                yield from self.graph.schema(branch=self.branch).splitlines()
            case "describe":
                yield from self._describe(rest)
            case "explain":
                yield from self._explain(rest)
            case _:
                raise BadRequest(f"unknown command \\{name}: \\help lists them")

    def _choose_branch(self, name: str) -> Iterator[str]:
        if not name:
            yield from (f"{'*' if one == self.branch else ' '} {one}" for one in self.graph.branches())
            return
        self.graph.snapshot(name)  # refuses one that does not exist
        self.branch, self.at = name, None
        yield f"on branch {name}"

    def _choose_moment(self, commit: str) -> Iterator[str]:
        if commit:
            moment = snapshot_of(commit)
            assert moment is not None
            self.at = self.graph.at(moment).snapshot.commit_id
            yield f"at commit {self.at}: reads see this state"
        else:
            self.at = None
            yield f"at the present of {self.branch}"

    def _choose_format(self, name: str) -> str:
        if name and name not in FORMATS:
            raise BadRequest(f"unknown format '{name}': {', '.join(FORMATS)}")
        self.format = name or self.format
        return self.format

    def _describe(self, name: str) -> Iterator[str]:
        if not name:
            raise BadRequest("\\describe takes the name of a type")
        branch = self.branch if self.at is None else None
        found = self.graph.describe(name, branch=branch, snapshot=snapshot_of(self.at))
        yield from click.unstyle(render_description(found)).splitlines()  # a pipe and a terminal alike (H1)

    def _explain(self, text: str) -> Iterator[str]:
        if not text:
            raise BadRequest("\\explain takes a read, or the name of one that is kept")
        given, query = self._kept(text) if is_call(text) else (found := declared(text), found.queries[-1])
        branch = self.branch if self.at is None else None
        plan = self.graph.explain(given.source, query.name.text, branch=branch, snapshot=snapshot_of(self.at))
        yield from plan.to_text().splitlines()


def _object(text: str) -> dict[str, object]:
    try:
        found = read_strict_json(text)
    except ValueError as error:
        raise BadRequest(f"the parameters are not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadRequest('the parameters must be a JSON object, such as {"code": "VGR-1"}')
    return found
