"""A graph behind a server, asked over HTTP."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from omnigraph.client.access import DiffAnswer, FeedPlace, QueryCall, SchemaCall, StoredCall
from omnigraph.client.answer import Document, ReadAnswer
from omnigraph.client.choice import ChangeChoice
from omnigraph.client.http import Http, UrlParams, Write
from omnigraph.client.understood import understood
from omnigraph.core.errors import OmnigraphError, UnsupportedError
from omnigraph.wire.commit_filter import MAIN, commit_condition

if TYPE_CHECKING:
    from omnigraph.operations.progress import TableProgressCallback

IF_COMMIT = "Omnigraph-If-Graph-Commit"
NDJSON = "application/x-ndjson"


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
        body = _call_body(call) | _given(branch=branch, snapshot=_text(snapshot))
        return ReadAnswer.of_document(self._http.send("POST", "/query", body=body))

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
        body = _call_body(call) | _given(branch=branch, message=message)
        path, headers = _conditional("/mutate", if_commit)
        return self._http.send("POST", path, body=body, headers=headers, write=self._write(branch))

    def invoke(
        self, call: StoredCall, *, branch: str | None, snapshot: str | int | None, if_commit: str | None
    ) -> Document | ReadAnswer:
        """Run a stored query: rows of a read, or what a mutation did."""
        body = _given(
            params=call.params,
            branch=branch,
            snapshot=_text(snapshot),
            expect_mutation=call.is_mutation,
        )
        path, headers = _conditional(f"/queries/{quote(call.name, safe='')}", if_commit)
        write = None if call.is_mutation is False else self._write(branch)
        document = self._http.send("POST", path, body=body, headers=headers, write=write)
        return ReadAnswer.of_document(document) if "rows" in document else document

    def queries(self) -> Document:
        """List the stored queries of the server, as far as they are listed."""
        return self._http.get("/queries")

    def branches(self) -> Document:
        """List the branches."""
        return self._http.get("/branches")

    def create_branch(self, name: str, from_: str | None, *, actor: str | None) -> Document:
        """Create a branch."""
        _refuse_actor(actor)
        body = _given(name=name, **{"from": from_})
        return self._http.send("POST", "/branches", body=body, write=self._write(from_))

    def delete_branch(self, name: str, *, actor: str | None) -> Document:
        """Delete a branch."""
        _refuse_actor(actor)
        path = f"/branches/{quote(name.strip(), safe='')}"
        return self._http.send("DELETE", path, write=self._write(name.strip()))

    def merge(
        self,
        source: str,
        into: str,
        *,
        actor: str | None,
        message: str | None,
        delete_branch: bool,
        dry_run: bool,
    ) -> Document:
        """Merge a branch into another one, as one commit."""
        _refuse_actor(actor)
        body = _given(
            source=source,
            target=into,
            message=message,
            delete_branch=delete_branch or None,
            dry_run=dry_run or None,
        )
        write = None if dry_run else self._write(into)
        return self._http.send("POST", "/branches/merge", body=body, write=write)

    def snapshot(self, branch: str | None) -> Document:
        """Describe the newest state of a branch."""
        return self._http.get("/snapshot", {"branch": branch})

    def export(self, branch: str | None, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the data as NDJSON."""
        body = _given(branch=branch, type_names=list(types) or None)
        with self._http.stream("/export", body) as pieces:
            yield from pieces

    def load(
        self,
        data: bytes,
        *,
        mode: str,
        branch: str | None,
        from_: str | None,
        index: bool,
        message: str | None,
    ) -> Document:
        """Load NDJSON, as one commit."""
        params: UrlParams = {
            "mode": mode,
            "branch": branch,
            "from": from_,
            "index": None if index else False,
            "message": message,
        }
        return self._http.send(
            "POST",
            "/load/ndjson",
            params=params,
            content=data,
            headers={"Content-Type": NDJSON},
            write=self._write(branch),
        )

    def commits(self, branch: str | None, wanted: Sequence[tuple[str, str]], limit: int | None) -> Document:
        """List commits, newest first; what a server cannot be asked for is chosen here."""
        asked = {key: value for key, value in wanted if key != "branch"}
        is_all_asked = len(asked) == len(wanted)
        params = {**asked, "branch": branch, "limit": limit if is_all_asked else None}
        conditions = [commit_condition(key, value) for key, value in wanted]
        document = self._http.get("/commits", params)
        with understood():
            listed: list[Document] = document["commits"]
            if is_all_asked:
                return {"commits": listed}
            found = [commit for commit in listed if all(holds(_Listed.of(commit)) for holds in conditions)]
            return {"commits": found[:limit]}

    def commit(self, commit_id: str, branch: str | None) -> Document:
        """Show one commit."""
        if branch is not None:
            raise UnsupportedError("a server finds a commit by its id alone: leave --branch out")
        return self._http.get(f"/commits/{quote(commit_id, safe='')}")

    def commit_changes(
        self, commit_id: str, chosen: ChangeChoice, *, limit: int, page_token: str | None
    ) -> Document:
        """Return one page of what a commit changed."""
        params = {**_choice(chosen), "limit": limit, "page_token": page_token}
        return self._http.get(f"/commits/{quote(commit_id, safe='')}/changes", params)

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
        return self._http.get("/changes", params)

    def diff(self, a: str, b: str, chosen: ChangeChoice) -> DiffAnswer:
        """Compare two branches or commits, from `b` to `a`."""
        return _DiffPages(self._http, {"from": b, "to": a, **_choice(chosen)})

    def schema(self, branch: str | None) -> Document:
        """Return the text of the schema."""
        return self._http.get("/schema", {"branch": branch})

    def apply_schema(
        self,
        call: SchemaCall,
        *,
        actor: str | None,
        progress: "TableProgressCallback | None" = None,  # noqa: ARG002 - a server tells none
    ) -> Document:
        """Change the schema, as one commit."""
        _refuse_actor(actor)
        if call.exclusive or call.engine != "auto" or call.master is not None:
            raise UnsupportedError(
                "a server takes none of --exclusive, --engine and --master: leave them out"
            )
        body = _given(
            schema_source=call.source.text,
            branch=call.branch,
            base=call.base,
            allow_data_loss=call.allow_data_loss or None,
            index=None if call.index else False,
            message=call.message,
        )
        applied = self._http.send("POST", "/schema/apply", body=body, write=self._write(call.branch))
        for note in applied.get("notes", ()):
            call.tell_note(f"note: {note}")
        return applied

    def _write(self, branch: str | None) -> Write:
        """Return what the error of a lost answer says: the branch, and its newest commit as of now."""
        try:
            document = self._http.get("/commits", {"branch": branch, "limit": 1})
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
    created_at: int
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
        self._first = http.get("/diff", params)

    def summary(self) -> Document:
        """Return both states, and the number of changes of each table."""
        with understood():
            return {name: self._first[name] for name in ("from", "to", "stats")}

    def changes(self) -> Iterator[Document]:
        """Yield the changes, page by page."""
        page: Document = self._first
        while True:
            with understood():
                changes = list[Document](page["changes"])
            yield from changes
            token = page.get("next_page_token")
            if token is None:
                return
            page = self._http.get("/diff", {**self._params, "page_token": token})


def _call_body(call: QueryCall) -> Document:
    return _given(query=call.source.text, name=call.name, params=call.params)


def _given(**fields: object) -> Document:
    return {name: value for name, value in fields.items() if value is not None}


def _text(snapshot: str | int | None) -> str | None:
    return None if snapshot is None else str(snapshot)


def _choice(chosen: ChangeChoice) -> dict[str, Sequence[str]]:
    return {"kind": chosen.kinds, "type": chosen.types, "op": chosen.ops}


def _conditional(path: str, if_commit: str | None) -> tuple[str, dict[str, str]]:
    """Return the path of a write, which is another one where it is conditional, and its header."""
    return (path, {}) if if_commit is None else (f"{path}/if-graph-commit", {IF_COMMIT: if_commit})


def _refuse_actor(actor: str | None) -> None:
    assert actor is None, "the server knows the author by the token; callers refuse one before they come here"
