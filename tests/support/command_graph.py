"""A graph as commands reach it: the methods of `Graph` that are commands, and what `--json` prints as values.

Documents are read by what reads those of a server, because they are the same. What is no command, or none of
the way in which the graph is addressed, raises `NotACommandError`, which no step expects.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather

from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.model import Catalog
from omnigraph.changes.model import ChangeBlock, EntityChange
from omnigraph.client.access import QueryCall
from omnigraph.client.remote import read_back
from omnigraph.client.remote.json_rows import result_of_json
from omnigraph.client.remote.looks import RemoteExplanation, description_of
from omnigraph.client.remote.times import Times
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.span import Source
from omnigraph.graph.result import Result
from omnigraph.history.commits import GraphCommit
from omnigraph.operations.changes.diff import TableCounts
from tests.support.in_process import invoke

Document = dict[str, Any]


class NotACommandError(AssertionError):
    """Something that a program can ask for and that no command does."""


class CommandFailedError(OmnigraphError):
    """What a command said when it failed: its text and its code, and with what it exited."""

    def __init__(self, printed: Document, exit_code: int) -> None:
        """Take the document of the error."""
        super().__init__(printed["error"])
        self.printed, self.exited = printed, exit_code


@dataclass(frozen=True)
class CommandGraph:
    """One graph, named by a flag and its value: `--store` or `--server`."""

    folder: Path
    flag: str
    address: str

    # Reads

    def query(
        self,
        source: str | Source,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: object = None,
    ) -> Result:
        printed = self._one("query", "-e", _text(source), *_params(params), *_state(branch, snapshot))
        call = QueryCall(Source(_text(source)), None, params)
        return result_of_json(printed, call, self._catalog(branch))

    def explain(
        self,
        source: str | Source,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: object = None,
    ) -> RemoteExplanation:
        words = ["explain", "-e", _text(source), *_params(params), *_state(branch, snapshot)]
        document = self._one(*words)
        return RemoteExplanation(self._text(*words).rstrip("\n"), document)

    def describe(self, type_name: str, *, branch: str | None = None, snapshot: object = None) -> object:
        return description_of(self._one("describe", type_name, *_state(branch, snapshot)))

    def blob(self, *cell: str, branch: str | None = None, snapshot: object = None) -> "CommandBlob":
        words = (*cell, *_state(branch, snapshot))
        return CommandBlob(self, words, self._one("blob", "stat", *words))

    def at(self, snapshot: str) -> "CommandView":
        return CommandView(self, snapshot)

    def snapshot(self, branch: str | None = None) -> object:
        return read_back.snapshot_of(self._one("snapshot", *_state(branch)))

    def export(self, *, types: Sequence[str]) -> Iterator[object]:
        printed = self._text("export", *_each("--type", types))
        return (self._times().record(json.loads(line)) for line in printed.splitlines())

    def queries(self) -> object:
        printed = self._one("queries", "list", *self._stored())
        return [read_back.stored_query_of(item) for item in printed["queries"]]

    def invoke(
        self, name: str, params: Mapping[str, object] | None = None, *, message: str | None = None
    ) -> object:
        if self.flag != "--server":
            raise NotACommandError("a stored query is one of a server")
        if any(query.name == name and query.is_mutation for query in self.queries()):  # type: ignore[attr-defined]
            return read_back.mutation_of(
                self._one("mutate", name, *_params(params), *_given(message=message))
            )
        if message is not None:
            raise NotACommandError("a read makes no commit")
        printed = self._one("query", name, *_params(params))
        text = (self.folder / "stored.gq").read_text()
        return result_of_json(printed, QueryCall(Source(text), name, params), self._catalog(None))

    # History

    def branches(self) -> object:
        return self._one("branch", "list")["branches"]

    def commits(
        self, *, branch: str | None = None, limit: int | None = None, where: object = None
    ) -> list[GraphCommit]:
        if where is not None:
            raise NotACommandError("a condition is written in Python")
        bounds = () if limit is None else ("--limit", str(limit))
        printed = self._one("commit", "list", *bounds, *_state(branch))
        return [read_back.commit_of(item) for item in printed["commits"]]

    def commit(self, commit_id: str, *, branch: str | None = None) -> GraphCommit:
        return read_back.commit_of(self._one("commit", "show", commit_id, *_given(branch=branch)))

    def index_status(self, *, branch: str | None = None) -> object:
        if self.flag != "--store":
            raise NotACommandError("maintenance is where the storage is")
        return read_back.indexes_of(self._one("index", "status", *_given(branch=branch)))

    def recoveries(self) -> object:
        if self.flag != "--store":
            raise NotACommandError("maintenance is where the storage is")
        return [read_back.recovery_of(item) for item in self._one("recovery", "list")["recoveries"]]

    def commit_changes(self, commit_id: str) -> "CommandChanges":
        pages = self._documents("commit", "changes", commit_id)
        found = [read_back.changes_page_of(page, self._times()) for page in pages]
        return CommandChanges(found[0].cause, [change for page in found for change in page.changes])

    def diff(self, a: str, *, kinds: Sequence[str] = ()) -> "CommandDiff":
        printed = self._one("diff", a, *_each("--kind", kinds))
        counted = self._one("diff", a, "--stat", *_each("--kind", kinds))
        assert counted == {name: of for name, of in printed.items() if name != "changes"}
        changes = [read_back.change_of(item, self._times()) for item in printed["changes"]]
        return CommandDiff(changes, read_back.counts_of(printed["stats"]))

    def changes(self, *, start: str) -> "CommandFeed":
        pages = self._documents("changes", "poll", "--start", start)
        while not pages[-1]["caught_up"]:
            pages += self._documents("changes", "poll", "--cursor", pages[-1]["cursor"])
        found = [read_back.feed_page_of(page, self._times()) for page in pages]
        return CommandFeed([block for page in found for block in page.blocks], pages[-1]["cursor"])

    def poll_changes(self, *, limit: int | None = None, **place: str) -> object:
        named = [word for name, value in place.items() for word in ("--" + name.replace("_", "-"), value)]
        bounds = () if limit is None else ("--limit", str(limit))
        return read_back.feed_page_of(self._documents("changes", "poll", *named, *bounds)[0], self._times())

    def baseline(self, *, types: Sequence[str]) -> "CommandBaseline":
        if self.flag != "--store":
            raise NotACommandError("a baseline is taken where the storage is")
        out = self.folder / "baseline.ndjson"
        printed = self._one("changes", "baseline", "--out", str(out), *_each("--type", types))
        records = [json.loads(line) for line in out.read_text().splitlines()]
        entities = [self._times().record(record) for record in records if "baseline" not in record]
        return CommandBaseline(entities, printed["snapshot_commit_id"], printed["resume_cursor"])

    # Writes

    def mutate(
        self,
        source: str | Source,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
    ) -> object:
        options = _given(branch=branch, message=message, if_commit=if_commit)
        return read_back.mutation_of(self._one("mutate", "-e", _text(source), *_params(params), *options))

    def load(
        self,
        data: object,
        mode: str,
        *,
        branch: str | None = None,
        from_: str | None = None,
        **checks: bool,
    ) -> object:
        if not isinstance(data, bytes):
            raise NotACommandError("objects and dicts are those of a program")
        words = ("load", "--data", "-", "--mode", mode, *_given(branch=branch), *_given(**{"from": from_}))
        return read_back.load_of(self._one(*words, *_flags(**checks), stdin=data))

    def load_tables(self, tables: Mapping[str, object], mode: str, **checks: bool) -> object:
        if self.flag != "--store":
            raise NotACommandError("a command sends one file of NDJSON to a server")
        words = []
        for number, (name, table) in enumerate(tables.items()):
            if not isinstance(table, pa.Table):
                raise NotACommandError("objects and dicts are those of a program")
            feather.write_feather(table, path := str(self.folder / f"table-{number}.arrow"), "uncompressed")
            words += ["--data", f"{name}={path}"]
        return read_back.load_of(self._one("load", *words, "--mode", mode, *_flags(**checks)))

    def create_branch(self, name: str, from_: str | None = None) -> object:
        return read_back.branch_of(self._one("branch", "create", name, *_given(**{"from": from_})))

    def delete_branch(self, name: str) -> None:
        self._one("branch", "delete", name, "--yes")

    def merge(self, source: str, *, into: str | None = None, dry_run: bool = False) -> object:
        flags = _flags(dry_run=dry_run)
        return read_back.merge_of(self._one("branch", "merge", source, *_given(into=into), *flags))

    def upgrade_branch(
        self, name: str, *, message: str | None = None, index: bool = True, allow_data_loss: bool = False
    ) -> object:
        flags = _flags(no_index=not index, allow_data_loss=allow_data_loss)
        words = ("branch", "upgrade", name, *_given(message=message), *flags)
        return read_back.schema_applied_of(self._one(*words))

    def schema(self, *, branch: str | None = None) -> str:
        return str(self._one("schema", "show", *_state(branch))["schema_source"])

    def plan_schema(self, text: str) -> object:
        if self.flag != "--store":
            raise NotACommandError("a plan is made where the storage is")
        return read_back.plan_of(self._one("schema", "plan", "--schema", "-", stdin=text.encode()))

    def apply_schema(self, text: str | Source, *, branch: str | None = None) -> object:
        words = ("schema", "apply", "--schema", "-", *_given(branch=branch))
        return read_back.schema_applied_of(self._one(*words, stdin=_text(text).encode()))

    # What a command prints

    def _one(self, *words: str, stdin: bytes = b"") -> Document:
        (printed,) = self._documents(*words, stdin=stdin)
        return printed

    def _documents(self, *words: str, stdin: bytes = b"") -> list[Document]:
        """Run a command with `--json`, and return the documents that it printed."""
        text, decoder, found = self._text(*words, "--json", stdin=stdin).lstrip(), json.JSONDecoder(), []
        while text:
            printed, end = decoder.raw_decode(text)
            found.append(printed)
            text = text[end:].lstrip()
        return found

    def _text(self, *words: str, stdin: bytes = b"") -> str:
        outcome = invoke(*words, *self._place(words), cwd=self.folder, stdin=stdin)
        if outcome.code != 0:
            raise CommandFailedError(_error(outcome.stdout, outcome.stderr), outcome.code)
        return outcome.stdout

    def _place(self, words: Sequence[str]) -> tuple[str, ...]:
        return (
            () if words[:2] == ("queries", "list") and self.flag == "--store" else (self.flag, self.address)
        )

    def _stored(self) -> tuple[str, ...]:
        return ("--queries", "stored.gq") if self.flag == "--store" else ()

    def _catalog(self, branch: str | None) -> Catalog:
        return compile_schema(Source(self.schema(branch=branch)))

    def _times(self) -> Times:
        return Times(lambda: self._catalog(None))


@dataclass(frozen=True)
class CommandBlob:
    """A value: what `blob stat` says, and what `blob get` prints."""

    commands: CommandGraph
    _words: tuple[str, ...]
    _printed: Document

    kind = property(lambda self: self._printed["kind"])
    size = property(lambda self: self._printed["size"])
    uri = property(lambda self: self._printed["uri"])
    etag = property(lambda self: self._printed["etag"])
    commit_id = property(lambda self: self._printed["graph_commit_id"])

    def save(self, path: Path) -> None:
        self.commands._text("blob", "get", *self._words, "--out", str(path))

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        length = () if end is None else ("--length", str(end - start))
        with_out = self.commands.folder / "piece.bin"
        self.commands._text(
            "blob", "get", *self._words, "--offset", str(start), *length, "--out", str(with_out)
        )
        return with_out.read_bytes()


@dataclass(frozen=True)
class CommandView:
    """A past state, which each command names."""

    commands: CommandGraph
    _snapshot: str

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name == "schema":
            raise NotACommandError("the schema of the past")
        method = getattr(self.commands, name)
        return lambda *arguments, **options: method(*arguments, **options, snapshot=self._snapshot)


@dataclass(frozen=True)
class CommandChanges:
    """What a commit changed."""

    cause: object
    _changes: list[EntityChange]

    def __iter__(self) -> Iterator[EntityChange]:
        return iter(self._changes)


@dataclass(frozen=True)
class CommandDiff:
    """What differs."""

    _changes: list[EntityChange]
    _counts: tuple[TableCounts, ...]

    def __iter__(self) -> Iterator[EntityChange]:
        return iter(self._changes)

    def stat(self) -> tuple[TableCounts, ...]:
        return self._counts


@dataclass(frozen=True)
class CommandFeed:
    """The blocks of a branch, and where to go on."""

    _blocks: list[ChangeBlock]
    cursor: str

    def __iter__(self) -> Iterator[ChangeBlock]:
        return iter(self._blocks)


@dataclass(frozen=True)
class CommandBaseline:
    """Every entity of a branch."""

    _records: list[dict[str, object]]
    snapshot_commit_id: str
    resume_cursor: str

    def __iter__(self) -> Iterator[dict[str, object]]:
        return iter(self._records)


# Arguments as words


def _text(source: str | Source) -> str:
    return source.text if isinstance(source, Source) else source


def _params(params: Mapping[str, object] | None) -> tuple[str, ...]:
    if params is None:
        return ()
    if not isinstance(params, Mapping):
        raise NotACommandError("an argument in the place of another")
    return "--params", json.dumps(params)


def _state(branch: str | None = None, snapshot: object = None) -> tuple[str, ...]:
    if not isinstance(snapshot, str | int | None) or isinstance(snapshot, bool):
        raise NotACommandError("a moment, or nothing that names a state")
    return *_given(branch=branch), *_given(snapshot=None if snapshot is None else str(snapshot))


def _given(**options: str | None) -> tuple[str, ...]:
    """Return flags for what is given."""
    words = []
    for name, value in options.items():
        words += [] if value is None else ["--" + name.replace("_", "-"), value]
    return tuple(words)


def _flags(**flags: bool) -> list[str]:
    """Return the flags that are set."""
    return ["--" + name.replace("_", "-") for name, is_set in flags.items() if is_set]


def _each(flag: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def _error(stdout: str, stderr: str) -> Document:
    """Return the error of a command: its document, or the line of a command that prints none."""
    try:
        found: Document = json.loads(stdout)
    except ValueError:
        lines = [line for line in stderr.splitlines() if line.startswith(("error: ", "Error: "))]
        return {"error": "\n".join(lines).partition(": ")[2] or stderr}
    return found
