"""Values of Blobs in an object store: what each part asks for, and objects that are gone or cut."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import HistoricalVersionReclaimed, StorageError
from omnigraph.graph.graph import Graph
from omnigraph.operations.blob import PIECE_BYTES, Blob
from omnigraph.storage.control.object_store import ObjectStore, list_sizes, read_bytes, remove_objects
from omnigraph.storage.control.uri import GraphRoot
from tests.engine.blobs.steps import CITES, FIVE, SCHEMA, VALUES, expected, held, table
from tests.support.proxy import StoreProxy, StoreRequest, asked
from tests.support.queries import mutation
from tests.support.s3 import new_root, place

pytestmark = pytest.mark.slow  # starts a server
FOUND_BYTES_MAX = 100_000  # to find a value, whatever its length


def build_documents(uri: str) -> None:
    """Make a graph of all values, of nodes and of edges."""
    with omnigraph.init(uri, SCHEMA) as graph:
        graph.load_tables({"Doc": table(VALUES)}, "append", index=False)
        graph.load_tables({"Cites": table(VALUES, place=CITES)}, "append", index=False)


@pytest.fixture
def docs(endpoint: str, proxy: StoreProxy) -> Iterator[Graph]:
    with omnigraph.open(place(build_documents, new_root(endpoint))) as graph:
        yield graph


def of_data(requests: list[StoreRequest]) -> list[tuple[str, str, int]]:
    """Return what was asked of data files: how, which part, and how many bytes came."""
    return [(one.kind, one.part, one.size) for one in requests if one.key.endswith(".lance")]


def five(graph: Graph) -> Blob:
    """Find the value of 5 MB."""
    return graph.blob("node", "Doc", "five", "body")


@pytest.mark.case("surfaces", 860)
def test_values_of_nodes_and_edges_are_read_on_every_branch(docs: Graph, tmp_path: Path) -> None:
    docs.create_branch("left")
    docs.mutate(mutation('insert Doc { name: "new", body: "base64:eA==" }'), branch="left")

    assert held(docs) == held(docs, place=CITES) == expected()
    assert held(docs, branch="left") == expected({**VALUES, "new": b"x"})
    five(docs).save(tmp_path / "five.bin")
    assert (tmp_path / "five.bin").read_bytes() == VALUES["five"]


@pytest.mark.case("surfaces", 860)
def test_a_part_of_a_value_is_one_request_for_exactly_its_bytes(docs: Graph, proxy: StoreProxy) -> None:
    value, found, parts = VALUES["five"], list[Blob](), list[bytes]()
    assert value is not None

    finding = asked(proxy, lambda: found.append(five(docs)))
    (blob,) = found
    part = asked(proxy, lambda: parts.append(blob.read(1_000, 1_250)))
    pieces = blob.stream()
    first = asked(proxy, lambda: parts.append(next(pieces)))
    second = asked(proxy, lambda: parts.append(next(pieces)))
    none = asked(proxy, lambda: parts.append(docs.blob("node", "Doc", "empty", "body").read()))

    assert sum(one.size for one in finding) < FOUND_BYTES_MAX
    assert [size for _, _, size in of_data(part)] == [250] == [one.size for one in part]
    assert [[size for *_, size in of_data(each)] for each in (first, second)] == [
        [PIECE_BYTES],
        [FIVE - PIECE_BYTES],
    ]
    assert [*(one.kind for one in (*part, *first, *second))] == ["GET"] * 3
    assert sum(one.size for one in none) < FOUND_BYTES_MAX
    assert parts == [value[1_000:1_250], value[:PIECE_BYTES], value[PIECE_BYTES:], b""]


@pytest.mark.case("surfaces", 861)
def test_an_object_that_is_gone_or_cut_is_damage_that_is_named(docs: Graph) -> None:
    root, blob = GraphRoot.parse(docs.uri), five(docs)
    (name,) = _data_files(docs, "Doc")
    content = read_bytes(root, name)
    assert content is not None

    remove_objects(root, [name])
    told = []
    for read in (blob.read, lambda: five(docs), lambda: docs.table("Doc")):
        with pytest.raises(GraphDamaged) as caught:
            read()
        told.append((caught.value.file, caught.value.reason))
    _put(root, name, content[: len(content) // 2])
    cut = []
    for start in (0, FIVE - 10):  # of which the store gives some bytes, and none
        with pytest.raises(GraphDamaged) as caught:
            blob.read(start)
        cut.append((caught.value.file, caught.value.reason))
    _put(root, name, content)

    assert told == [(name, "is missing")] * 3
    assert cut == [(name, f"has {len(content) // 2} of {len(content)} bytes")] * 2
    assert "repair" not in str(caught.value)  # which is for graphs on a disk
    assert blob.read() == VALUES["five"]


@pytest.mark.case("surfaces", 861)
def test_an_object_that_a_branch_shares_is_named_where_it_lies(docs: Graph) -> None:
    docs.create_branch("left")
    docs.mutate(mutation('insert Doc { name: "new", body: "base64:eA==" }'), branch="left")
    blob = docs.blob("node", "Doc", "five", "body", branch="left")
    (name,) = _data_files(docs, "Doc")

    remove_objects(GraphRoot.parse(docs.uri), [name])

    with pytest.raises(GraphDamaged, match="is missing") as caught:
        blob.read()
    assert caught.value.file.rpartition("/")[2] == name.rpartition("/")[2]


@pytest.mark.case("surfaces", 861)
def test_an_object_that_went_with_its_version_is_no_damage(docs: Graph) -> None:
    root, blob = GraphRoot.parse(docs.uri), five(docs)
    location = docs.snapshot().entry("node:Doc").location

    remove_objects(root, [name for name in list_sizes(root) if name.startswith(f"{location}/")])

    with pytest.raises(HistoricalVersionReclaimed):
        blob.read()


@pytest.mark.case("surfaces", 861)
def test_a_bucket_that_is_gone_is_told_as_that(endpoint: str, proxy: StoreProxy) -> None:
    root = new_root(endpoint)
    with omnigraph.open(place(build_documents, root), mode="ro") as docs:
        blob = five(docs)
        remove_objects(root, list(list_sizes(root)))
        httpx.delete(f"{endpoint}/{root.bucket}", timeout=60).raise_for_status()

        with pytest.raises(StorageError, match=f"bucket '{root.bucket}' does not exist") as caught:
            blob.read()

    assert (caught.value.kind, "127.0.0.1" in str(caught.value)) == ("configuration", False)


def _data_files(graph: Graph, type_name: str) -> list[str]:
    """Return the names of the data files of a type of nodes on main."""
    folder = f"{graph.snapshot().entry(f'node:{type_name}').location}/data/"
    return [name for name in list_sizes(GraphRoot.parse(graph.uri)) if name.startswith(folder)]


def _put(root: GraphRoot, name: str, content: bytes) -> None:
    ObjectStore(root).write_pieces(name, content, piece_bytes=2 * FIVE, pieces_at_once=1)
