"""A graph behind a server, asked over HTTP."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from omnigraph.client.access import (
    BlobCall,
    DiffAnswer,
    FeedPlace,
    QueryCall,
    SchemaCall,
    StoredCall,
    UpgradeCall,
)
from omnigraph.client.answer import Document, ReadAnswer
from omnigraph.client.blob_answer import AS_IT_IS, EXTERNAL, KIND_HEADER, bytes_of, length_of, range_header
from omnigraph.client.choice import ChangeChoice
from omnigraph.client.http import BrokenAnswer, Http, UrlParams, Write
from omnigraph.client.pages import PagesTaken
from omnigraph.client.path_part import path_part
from omnigraph.client.record_stream import NDJSON, whole_lines
from omnigraph.client.sent_params import sent_params
from omnigraph.client.understood import understood
from omnigraph.core.blob_errors import BlobRangeError
from omnigraph.core.errors import (
    BranchNotFound,
    CommitNotFound,
    NotFoundError,
    OmnigraphError,
    UnsupportedError,
    VersionNotFound,
)
from omnigraph.core.values import shown
from omnigraph.graph.arguments import required_text
from omnigraph.wire.arrow_stream import ARROW_STREAM
from omnigraph.wire.commit_filter import MAIN, commit_condition
from omnigraph.wire.responses import (
    BranchCreateOutput,
    BranchDeleteOutput,
    BranchListOutput,
    BranchMergeOutput,
    ChangeFeedOutput,
    ChangeOutput,
    CommitChangesOutput,
    CommitListOutput,
    CommitOutput,
    DiffOutput,
    IndexStatusOutput,
    LoadOutput,
    QueryListOutput,
    ReadOutput,
    RecoveryListOutput,
    SnapshotOutput,
)
from omnigraph.wire.schema_responses import SchemaApplyOutput, SchemaOutput

if TYPE_CHECKING:
    from omnigraph.core.values import ValueType
    from omnigraph.operations.load.model import SentKeywords
    from omnigraph.operations.progress import TableProgressCallback

IF_COMMIT = "Omnigraph-If-Graph-Commit"


class ServedAccess:
    """`GraphAccess` on the address of a graph; it is the server that knows who is asking."""

    def __init__(self, http: Http) -> None:
        """Take the connection, which is closed with this."""
        self._http = http

    def __enter__(self) -> "ServedAccess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.__exit__(kind, error, trace)

    def query(self, call: QueryCall, *, branch: str | None, snapshot: str | int | None) -> ReadAnswer:
        """Run a read."""
        body = call_body(call) | given(branch=branch, snapshot=self._commit_id(snapshot))
        return ReadAnswer.of_document(self._http.send("POST", "/query", ReadOutput, body=body))

    def mutate(
        self,
        call: QueryCall,
        *,
        branch: str | None,
        actor: str | None,
        if_commit: str | None,
        message: str | None,
        retry: int | None,
    ) -> Document:
        """Run a mutation, as one commit."""
        _refuse_actor(actor)
        assert retry is None, "the server decides how long it tries"
        body = call_body(call) | given(branch=branch, message=message)
        path, headers = conditional("/mutate", if_commit)
        return self._http.send(
            "POST", path, ChangeOutput, body=body, headers=headers, write=self.write_on(branch)
        )

    def invoke(
        self, call: StoredCall, *, branch: str | None, snapshot: str | int | None, if_commit: str | None
    ) -> Document | ReadAnswer:
        """Run a stored query: rows of a read, or what a mutation did."""
        body = given(
            params=sent_params(call.params, lambda: None),
            branch=branch,
            snapshot=self._commit_id(snapshot),
            expect_mutation=call.is_mutation,
            message=call.message,
        )
        path, headers = conditional(query_path(call.name), if_commit)
        write = None if call.is_mutation is False else self.write_on(branch)
        shapes = [ReadOutput] if call.is_mutation is False else [ChangeOutput, ReadOutput]
        document = self._http.send("POST", path, *shapes, body=body, headers=headers, write=write)
        return ReadAnswer.of_document(document) if "rows" in document else document

    def queries(self) -> Document:
        """List the stored queries of the server, as far as they are listed."""
        return self._http.get("/queries", QueryListOutput)

    def branches(self) -> Document:
        """List the branches."""
        return self._http.get("/branches", BranchListOutput)

    def create_branch(self, name: str, from_: str | None, *, actor: str | None) -> Document:
        """Create a branch."""
        _refuse_actor(actor)
        body = given(name=name, **{"from": from_})
        write = self.write_on(from_)
        return self._http.send("POST", "/branches", BranchCreateOutput, body=body, write=write)

    def delete_branch(self, name: str, *, actor: str | None) -> Document:
        """Delete a branch."""
        _refuse_actor(actor)
        path = f"/branches/{path_part('name', required_text('name', name).strip(), BranchNotFound)}"
        return self._http.send("DELETE", path, BranchDeleteOutput, write=self.write_on(name.strip()))

    def merge(
        self,
        source: str,
        into: str,
        *,
        actor: str | None,
        message: str | None,
        delete_branch: bool,
        dry_run: bool,
        progress: "TableProgressCallback | None" = None,  # noqa: ARG002 - a server tells none
    ) -> Document:
        """Merge a branch into another one, as one commit."""
        _refuse_actor(actor)
        body = given(
            source=source,
            target=into,
            message=message,
            delete_branch=delete_branch or None,
            dry_run=dry_run or None,
        )
        write = None if dry_run else self.write_on(into)
        return self._http.send("POST", "/branches/merge", BranchMergeOutput, body=body, write=write)

    def blob(self, call: BlobCall) -> Document:
        """Describe a value."""
        params = self._blob_params(call)
        try:
            headers = self._http.head("/blob", params)
        except OmnigraphError:  # an answer to HEAD has no body, and so no text: that of GET has one
            with self._http.fetch("/blob", params, {"Range": "bytes=0-0"}):
                pass
            raise
        with understood():
            kind = _plain(headers[KIND_HEADER])
            is_external = kind == EXTERNAL
            return {
                "kind": kind,
                "size": None if is_external else length_of(headers),
                "etag": _plain(headers["ETag"]),
                "uri": _plain(headers["Location"]) if is_external else None,
                "graph_commit_id": _plain(headers["Omnigraph-Snapshot-Id"]),
            }

    def blob_bytes(self, call: BlobCall, start: int, end: int | None) -> Iterator[bytes]:
        """Yield bytes of a value."""
        headers = AS_IT_IS | range_header(start, end)
        try:
            with self._http.fetch("/blob", self._blob_params(call), headers) as answer:
                yield from bytes_of(answer, start, end)
        except BlobRangeError as error:
            if start or error.length:  # of an empty value, a range from its start is all of it
                raise

    def blob_piece(self, call: BlobCall, start: int, end: int, etag: str) -> bytes:
        """Return some bytes of a value, if it is still the one of an ETag.

        Raises:
            TransportError: the answer has others.
        """
        headers = AS_IT_IS | range_header(start, end) | {"If-Match": etag}
        with self._http.fetch("/blob", self._blob_params(call), headers) as answer:
            piece = b"".join(bytes_of(answer, start, end, etag))
            if len(piece) < end - start:
                raise BrokenAnswer("it has fewer bytes than were asked for")
        return piece

    def _blob_params(self, call: BlobCall) -> UrlParams:
        return {
            "entity": call.entity,
            "type": call.type_name,
            "id": call.id,
            "property": call.property,
            "branch": call.branch,
            "snapshot": self._commit_id(call.snapshot),
        }

    def _commit_id(self, snapshot: str | int | None) -> str | None:
        """Return the commit of a past state; versions are those of main."""
        return self.commit_at(None, snapshot) if isinstance(snapshot, int) else snapshot

    def commit_at(self, branch: str | None, version: int) -> str:
        """Return the newest commit of a branch up to a manifest version.

        Raises:
            VersionNotFound: the branch is not at that version yet, or was never at one so old.
        """
        listed = self.commits(branch, (), None)["commits"]
        with understood():  # a branch has a commit, from its beginning on
            newest = listed[0]["manifest_version"]
            found = [item["graph_commit_id"] for item in listed if item["manifest_version"] <= version]
        if not found or version > newest:
            raise VersionNotFound(f"manifest version {version} is not between 1 and {newest}")
        return str(found[0])

    def indexes(self, branch: str | None) -> Document:
        """Describe the declared indexes of a branch."""
        return self._http.get("/indexes", IndexStatusOutput, {"branch": branch})

    def recoveries(self) -> Document:
        """List the finished recoveries, newest first."""
        return self._http.get("/recoveries", RecoveryListOutput)

    def snapshot(self, branch: str | None) -> Document:
        """Describe the newest state of a branch."""
        return self._http.get("/snapshot", SnapshotOutput, {"branch": branch})

    def export(self, branch: str | None, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the data as NDJSON."""
        body = given(branch=branch, type_names=list(types) or None)
        with self._http.stream("POST", "/export", body=body) as answer:
            yield from whole_lines(answer)

    def load(
        self, data: bytes, *, mode: str, type_name: str | None = None, **keywords: "Unpack[SentKeywords]"
    ) -> Document:
        """Load NDJSON, or a stream of Arrow's with rows of one type, as one commit."""
        branch, dry_run = keywords.get("branch"), keywords.get("dry_run", False)
        strict_columns = keywords.get("strict_columns", False)
        params: UrlParams = {
            "mode": mode,
            "branch": branch,
            "from": keywords.get("from_"),
            "index": None if keywords.get("index", True) else False,
            "message": keywords.get("message"),
            "type": type_name,
            "dry_run": dry_run or None,
            "strict_columns": strict_columns or None,
        }
        path = "/load/ndjson" if type_name is None else "/load/arrow"
        return self._http.send(
            "POST",
            f"{path}/checked" if dry_run or strict_columns else path,  # which an older server does not have
            LoadOutput,
            params=params,
            content=data,
            headers={"Content-Type": NDJSON if type_name is None else ARROW_STREAM},
            write=None if dry_run else self.write_on(branch),
        )

    def commits(self, branch: str | None, wanted: Sequence[tuple[str, str]], limit: int | None) -> Document:
        """List commits, newest first; what a server cannot be asked for is chosen here."""
        asked = {key: value for key, value in wanted if key != "branch"}
        is_all_asked = len(asked) == len(wanted)
        params = {**asked, "branch": branch, "limit": limit if is_all_asked else None}
        conditions = [commit_condition(key, value) for key, value in wanted]
        document = self._http.get("/commits", CommitListOutput, params)
        with understood():
            listed: list[Document] = document["commits"]
            if is_all_asked:
                return {"commits": listed}
            found = [commit for commit in listed if all(holds(_Listed.of(commit)) for holds in conditions)]
            return {"commits": found[:limit]}

    def commit(self, commit_id: str, branch: str | None) -> Document:
        """Show one commit."""
        path = f"/commits/{path_part('commit_id', commit_id, CommitNotFound)}"
        return self._http.get(path, CommitOutput, {"branch": branch})

    def commit_changes(
        self, commit_id: str, chosen: ChangeChoice, *, limit: int, page_token: str | None
    ) -> Document:
        """Return one page of what a commit changed."""
        params = {**_choice(chosen), "limit": limit, "page_token": page_token}
        return self._http.get(
            f"/commits/{path_part('commit_id', commit_id, CommitNotFound)}/changes",
            CommitChangesOutput,
            params,
        )

    def poll_changes(
        self, place: FeedPlace, chosen: ChangeChoice, *, branch: str | None, limit: int
    ) -> Document:
        """Return one page of a feed."""
        params: UrlParams = {
            "cursor": place.cursor,
            "start": place.start,
            "page_token": place.page_token,
            "branch": branch,
            "limit": limit,
            **_choice(chosen),
        }
        return self._http.get("/changes", ChangeFeedOutput, params)

    def diff(self, a: str, b: str, chosen: ChangeChoice) -> DiffAnswer:
        """Compare two branches or commits, from `b` to `a`."""
        return _DiffPages(self._http, {"from": b, "to": a, **_choice(chosen)})

    def schema(self, branch: str | None) -> Document:
        """Return the text of the schema."""
        return self._http.get("/schema", SchemaOutput, {"branch": branch})

    def apply_schema(
        self,
        call: SchemaCall,
        *,
        actor: str | None,
        progress: "TableProgressCallback | None" = None,  # noqa: ARG002 - a server tells none
    ) -> Document:
        """Change the schema, as one commit."""
        _refuse_actor(actor)
        _refuse_flags(**{"--exclusive": call.exclusive}, **_spark_flags(call))
        body = given(
            schema_source=call.source.text,
            branch=call.branch,
            base=call.base,
            allow_data_loss=call.allow_data_loss or None,
            index=None if call.index else False,
            message=call.message,
        )
        write = self.write_on(call.branch)
        applied = self._http.send("POST", "/schema/apply", SchemaApplyOutput, body=body, write=write)
        for note in applied["notes"]:
            call.tell_note(f"note: {note}")
        return applied

    def upgrade_branch(
        self,
        call: UpgradeCall,
        *,
        actor: str | None,
        progress: "TableProgressCallback | None" = None,  # noqa: ARG002 - a server tells none
    ) -> Document:
        """Bring the changes of main's schema to a branch, as one commit."""
        _refuse_actor(actor)
        _refuse_flags(**_spark_flags(call))
        name = call.name.strip()
        body = given(
            allow_data_loss=call.allow_data_loss or None,
            index=None if call.index else False,
            message=call.message,
        )
        path = f"/branches/{path_part('name', name, BranchNotFound)}/upgrade"
        return self._http.send("POST", path, SchemaApplyOutput, body=body, write=self.write_on(name))

    def write_on(self, branch: str | None) -> Write:
        """Return what the error of a lost answer says: the branch, and its newest commit as of now."""
        try:
            document = self._http.get("/commits", CommitListOutput, {"branch": branch, "limit": 1})
        except OmnigraphError:  # a branch that the write makes, or a history that may not be read
            return Write(branch or MAIN, None)
        with understood():
            newest = document["commits"]
            return Write(branch or MAIN, newest[0]["graph_commit_id"] if newest else None)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A commit that a server listed, as conditions look at it."""

    actors: tuple[str | None, ...]
    manifest_branch: str | None
    created_at_micros: int
    merged_parent_commit_id: str | None

    def is_by(self, actor: str) -> bool:
        """Return whether an actor asked for it, or for one of the mutations in it."""
        return actor in self.actors

    @staticmethod
    def of(commit: Document) -> "_Listed":
        """Return the document of a commit as one."""
        return _Listed(
            (commit["actor_id"], *(item["actor_id"] for item in commit.get("operations", ()))),
            commit["manifest_branch"],
            commit["created_at"],
            commit["merged_parent_commit_id"],
        )


class _DiffPages:
    """`DiffAnswer` from pages, the first of which is there."""

    def __init__(self, http: Http, params: UrlParams) -> None:
        self._http, self._params = http, params
        self._first = http.get("/diff", DiffOutput, params)

    def summary(self) -> Document:
        """Return both states, and the number of changes of each table."""
        return {name: self._first[name] for name in ("from", "to", "stats")}

    def changes(self) -> Iterator[Document]:
        """Yield the changes, page by page."""
        page: Document = self._first
        taken = PagesTaken()
        while True:
            yield from page["changes"]
            token = taken.follow(page.get("next_page_token"))
            if token is None:
                return
            page = self._http.get("/diff", DiffOutput, {**self._params, "page_token": token})


def call_body(call: QueryCall) -> Document:
    """Return what a request says of a query."""
    params = sent_params(call.params, lambda: _declared(call))
    return given(query=call.source.text, name=call.name, params=params)


def _declared(call: QueryCall) -> "Mapping[str, ValueType]":
    """Return the types of a query's parameters, by its text alone."""
    from omnigraph.catalog.bind import find_query
    from omnigraph.language.query_parser import parse_queries

    query = find_query(parse_queries(call.source), call.name)
    return {parameter.name: parameter.type for parameter in query.parameters}


def given(**fields: object) -> Document:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def _plain(header: str) -> str:
    """Return a header of this API, which has printable ASCII alone.

    Raises:
        ValueError: it is of another one.
    """
    if not (header.isascii() and header.isprintable()):
        raise ValueError("not a header of this API")
    return header


def _choice(chosen: ChangeChoice) -> dict[str, Sequence[str]]:
    return {"kind": chosen.kinds, "type": chosen.types, "op": chosen.ops}


def conditional(path: str, if_commit: str | None) -> tuple[str, dict[str, str]]:
    """Return the path of a write, which is another one where it is conditional, and its header."""
    return (path, {}) if if_commit is None else (f"{path}/if-graph-commit", {IF_COMMIT: if_commit})


def query_path(name: str) -> str:
    """Return the address of a stored query, below that of its graph.

    Raises:
        NotFoundError: no query can be called so.
    """

    def absent(name: str) -> NotFoundError:
        return NotFoundError(f"stored query {shown(name)} not found")

    return f"/queries/{path_part('the name of a query', name, absent)}"


def _spark_flags(call: SchemaCall | UpgradeCall) -> dict[str, object]:
    return {"--engine": None if call.engine == "auto" else call.engine, "--master": call.master}


def _refuse_flags(**flags: object) -> None:
    """Refuse what only a change of a schema in its storage can use.

    Raises:
        UnsupportedError: one is given.
    """
    if any(value not in {None, False} for value in flags.values()):
        *others, last = flags
        raise UnsupportedError(f"a server takes none of {', '.join(others)} and {last}: leave them out")


def _refuse_actor(actor: str | None) -> None:
    assert actor is None, "the server knows the author by the token; callers refuse one before they come here"
