"""An S3-compatible server on loopback."""

import io
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from moto.s3.models import S3Backend, s3_backends
from moto.server import ThreadedMotoServer
from werkzeug.serving import make_server

import omnigraph
from omnigraph.storage.control.uri import GraphRoot
from tests.support.protocol import BEFORE, SCHEMA, records
from tests.support.store_listing import with_quick_listings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

BUCKETS = count(1)
PREFIX = "some/graph"  # of every graph in its bucket


class AtomicServer(ThreadedMotoServer):
    """Acts on one change at a time, as a store does: otherwise two could find the same condition to hold.

    A body that does not come whole, because its sender was killed, changes nothing.
    """

    def _server_entry(self) -> None:
        application = one_change_at_a_time(store_application())
        self._server = make_server(
            self._ip_address, self._port, application, threaded=True, request_handler=MotoRequestHandler
        )
        self._server_ready_event.set()
        self._server.serve_forever()


def store_application() -> "WSGIApplication":
    """Return the store, and the switches of the server under `/moto-api`.

    The server's own application looks through all the services there are at each request.
    """
    store, switches = with_quick_listings(create_backend_app("s3"), _store()), create_backend_app("moto_api")

    def dispatch(environ: "WSGIEnvironment", respond: "StartResponse") -> Iterable[bytes]:
        chosen = switches if environ["PATH_INFO"].startswith("/moto-api") else store
        return chosen(environ, respond)

    return dispatch


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


Build = Callable[[str], object]
_built: dict[Build, GraphRoot] = {}


def place(build: Build, root: GraphRoot) -> str:
    """Put a graph at a root, and return its address: it is built once in a process, and then copied.

    The store lives in this process, so that no object is sent.
    """
    if build not in _built:
        template = GraphRoot.parse(f"s3://{_new_bucket()}/{PREFIX}")
        build(template.uri)
        _built[build] = template
    for name, key in _store().get_bucket(_built[build].bucket).keys.items():
        _store().put_object(root.bucket, name, key.value)
    return root.uri


def build_people(uri: str) -> None:
    """Make the small graph of the protocol tests."""
    with omnigraph.init(uri, SCHEMA) as graph:
        graph.load(records(BEFORE), "append", index=False)


def build_indexed_people(uri: str) -> None:
    """Make the small graph of the protocol tests, with indexes."""
    with omnigraph.init(uri, SCHEMA) as graph:
        graph.load(records(BEFORE), "append")


def _new_bucket() -> str:
    name = f"bucket-{next(BUCKETS)}"
    _store().create_bucket(name, "us-east-1")
    return name


def _store() -> S3Backend:
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def stored(folder: Path) -> str:
    """Put a graph of a local folder into a bucket of its own, without sending it; return its address."""
    root = GraphRoot.parse(f"s3://{_new_bucket()}/{PREFIX}")
    for path in folder.rglob("*"):
        if path.is_file():
            _store().put_object(root.bucket, f"{PREFIX}/{path.relative_to(folder)}", path.read_bytes())
    return root.uri


def upload(folder: Path, endpoint: str) -> str:
    """Send a graph of a local folder to a server in another process; return its address."""
    root = new_root(endpoint)
    with httpx.Client(base_url=f"{endpoint}/{root.bucket}", timeout=120) as client:
        for path in folder.rglob("*"):
            if path.is_file():
                name = f"/{PREFIX}/{path.relative_to(folder)}"
                client.put(name, content=path.read_bytes()).raise_for_status()
    return root.uri
