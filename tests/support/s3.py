"""An S3-compatible server on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import httpx
from moto.server import ThreadedMotoServer

from omnigraph.storage.control.uri import GraphRoot

BUCKETS = count(1)
PREFIX = "some/graph"  # of every graph in its bucket


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield the address of a server that ends with the block."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
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
