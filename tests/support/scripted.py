"""A server that answers as a test says, on real sockets: what no real one would, and what gets lost."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from omnigraph.client.http import Http
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.served import ServedAccess
from omnigraph.config.server_url import ServerUrl

Answer = tuple[int, object, dict[str, str]]
HEAD = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
COMMIT: dict[str, object] = {
    "graph_commit_id": HEAD,
    "manifest_branch": None,
    "manifest_version": 1,
    "parent_commit_id": None,
    "merged_parent_commit_id": None,
    "actor_id": None,
    "created_at": 1_700_000_000_000_000,
}
COMMITS: Answer = (200, {"commits": [COMMIT]}, {})
CHANGED: dict[str, object] = {  # what a mutation is answered with
    "branch": "june",
    "query_name": "q",
    "affected_nodes": 0,
    "affected_edges": 0,
    "actor_id": None,
    "commit": None,
}
LOST: Answer = (0, None, {})  # the connection is closed in place of an answer


@dataclass
class Script:
    """The answers of a server to requests that are no list of commits, and what it was asked."""

    answers: list[Answer]
    url: str = ""
    asked: list[str] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    after: list[str | None] = field(default_factory=list)  # the last events that requests name
    ranges: list[tuple[str, str | None]] = field(default_factory=list)  # of bytes, each with its If-Match

    def graph(self) -> ServedAccess:
        """Return the graph as commands reach it."""
        return ServedAccess(self.http())

    def remote(self) -> RemoteGraph:
        """Return the graph as the library reaches it."""
        return RemoteGraph(self.http())

    def http(self) -> Http:
        """Return a connection that notes how long it would wait."""
        return Http(ServerUrl.parse(self.url), "tok-1", sleep=self.waited.append)


@contextmanager
def serving(*answers: Answer) -> Iterator[Script]:
    """Answer requests in this order; lists of commits have one commit."""
    script = Script(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.tokens.append(self.headers.get("Authorization"))
            if self.path.startswith("/commits?"):
                status, body, headers = COMMITS
            else:
                if self.path.startswith("/events"):
                    script.after.append(self.headers.get("Last-Event-ID"))
                if "Range" in self.headers:
                    script.ranges.append((self.headers["Range"], self.headers.get("If-Match")))
                script.asked.append(f"{self.command} {self.path}")
                status, body, headers = script.answers.pop(0)
            if status == 0:
                self.close_connection = True
                return
            content = json.dumps(body).encode() if not isinstance(body, bytes) else body
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                if value:  # a test leaves a header out
                    self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_POST = do_DELETE = do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()
