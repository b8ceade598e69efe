"""An S3-compatible server on loopback."""

import io
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.server import ThreadedMotoServer
from werkzeug.serving import make_server

from omnigraph.storage.control.uri import GraphRoot

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

BUCKETS = count(1)
PREFIX = "some/graph"  # of every graph in its bucket


class AtomicServer(ThreadedMotoServer):
    """Acts on one change at a time, as a store does: otherwise two could find the same condition to hold.

    A body that does not come whole, because its sender was killed, changes nothing.
    """

    def _server_entry(self) -> None:
        application = one_change_at_a_time(DomainDispatcherApplication(create_backend_app))
        self._server = make_server(
            self._ip_address, self._port, application, threaded=True, request_handler=MotoRequestHandler
        )
        self._server_ready_event.set()
        self._server.serve_forever()


def one_change_at_a_time(application: "WSGIApplication") -> "WSGIApplication":
    """Return an application that reads a request to its end, and then takes turns with all others."""
    turn = threading.Lock()

    def take_turns(environ: "WSGIEnvironment", respond: "StartResponse") -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in {"GET", "HEAD"}:
            return application(environ, respond)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        if len(body) < length:
            respond("400 Bad Request", [])
            return [b""]
        if length:
            environ["wsgi.input"] = io.BytesIO(body)
        with turn:
            return list(application(environ, respond))

    return take_turns


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield the address of a server that ends with the block."""
    server = AtomicServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def settings_of(endpoint: str) -> dict[str, str]:
    """Return the settings of a process that uses a server."""
    return {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_FORCE_PATH_STYLE": "true",
    }


def new_root(endpoint: str) -> GraphRoot:
    """Return a place for a graph in a bucket of its own."""
    bucket = f"bucket-{next(BUCKETS)}"
    httpx.put(f"{endpoint}/{bucket}", timeout=60).raise_for_status()
    return GraphRoot.parse(f"s3://{bucket}/{PREFIX}")


def upload(folder: Path, endpoint: str) -> str:
    """Put a graph of a local folder into a bucket of its own; return its address."""
    root = new_root(endpoint)
    with httpx.Client(base_url=f"{endpoint}/{root.bucket}", timeout=120) as client:
        for path in folder.rglob("*"):
            if path.is_file():
                name = f"/{PREFIX}/{path.relative_to(folder)}"
                client.put(name, content=path.read_bytes()).raise_for_status()
    return root.uri
