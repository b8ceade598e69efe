"""A store behind a recording proxy, graphs in it, and names for what is asked of it."""

import logging
import multiprocessing
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import perf_counter

from tests.support.proxy import StoreProxy, StoreRequest, longest_chain, store_proxy
from tests.support.s3 import PREFIX, s3_server, settings_of

_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_LONG = re.compile(r"[0-9a-f]{24,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INVERTED = 2**64 - 1
_CONTROL = {
    "__recovery": "sidecar",
    "__branches": "branch",
    "__writers": "writer",
    "__writer_lease.json": "lease",
    "_schema.pg": "schema",
    "_schema.ir.json": "schema",
    "__schema_state.json": "schema",
}
_PARTS = {
    "_versions": "version",
    "_transactions": "transaction",
    "_deletions": "deletion",
    "_indices": "index",
    "_refs": "ref",
    "data": "data",
    "tree": "ref",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What one piece of work asked of the store, and how long it took."""

    requests: list[StoreRequest]
    ms: float

    @property
    def chain(self) -> int:
        """The most requests that waited for each other."""
        return longest_chain(self.requests)

    def of_kind(self, kind: str) -> int:
        """Return how many requests of a kind there were."""
        return sum(request.kind == kind for request in self.requests)


@contextmanager
def store_behind_proxy() -> Iterator[StoreProxy]:
    """Yield a proxy, with the environment of this process set to it; the server has its own interpreter."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    with store_proxy(ours.recv()) as proxy:
        os.environ.update(settings_of(proxy.endpoint))
        yield proxy
    ours.send("end")
    process.join()


def _serve(pipe: Connection) -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # one line for each request
    with s3_server() as endpoint:
        pipe.send(endpoint)
        pipe.recv()


def asked(proxy: StoreProxy, work: Callable[[], object]) -> Asked:
    """Do a piece of work and return what it asked of the store."""
    proxy.taken()
    started = perf_counter()
    work()
    return Asked(proxy.taken(), (perf_counter() - started) * 1_000)


def object_kind(request: StoreRequest) -> str:
    """Name what kind of object a request is about: which dataset, and what of it."""
    first, _, rest = _below_root(request.key).partition("/")
    if first in _CONTROL:
        return _CONTROL[first]
    if first.startswith("__create_if_absent_probe"):
        return "probe"
    dataset = {"__manifest": "manifest", "nodes": "node table", "edges": "edge table"}.get(first)
    if dataset is None:
        return first or "root"
    inside = rest if first == "__manifest" else rest.partition("/")[2]
    if inside.startswith("tree/"):
        dataset, inside = f"{dataset}'s ref", inside.split("/", 2)[-1]
    part = next((name for folder, name in _PARTS.items() if inside.startswith(folder)), inside or "folder")
    if inside.endswith("latest_version_hint.json"):
        part = "version hint"
    return f"{dataset} {part}"


def short_key(request: StoreRequest) -> str:
    """Return the key below the graph, readable: versions by number, other long names cut."""
    folder, _, name = _below_root(request.key).rpartition("/")
    stem = name.removesuffix(".manifest")
    if stem != name and stem.isdecimal():
        number = int(stem)
        name = f"{_INVERTED - number if number > _INVERTED // 2 else number}.manifest"
    whole = f"{folder}/{name}" if folder else name
    whole = _LONG.sub(lambda found: found[0][:6] + "~", whole)
    return _ULID.sub(lambda found: found[0][-4:] + "~", whole)


def _below_root(key: str) -> str:
    return key.removeprefix(PREFIX).removeprefix("/")
