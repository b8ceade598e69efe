"""`graph.blob`: what is found, what its parts are, and what is refused."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

import omnigraph
from omnigraph.core.blob_errors import BlobRangeError
from omnigraph.core.errors import BadRequest, EntityNotFound, NotFoundError
from omnigraph.graph.graph import Graph
from omnigraph.operations.blob import PIECE_BYTES
from tests.engine.blobs.steps import FIVE, VALUES, expected, held, ids_of_edges, table
from tests.support.engine import reopen
from tests.support.queries import mutation
from tests.support.seam import internals

FOUND = cast("dict[str, bytes]", {name: value for name, value in VALUES.items() if value is not None})


@pytest.mark.case("surfaces", 580)
@pytest.mark.parametrize("name", FOUND)
def test_a_value_has_its_length_and_any_part_of_its_bytes(docs: Graph, name: str) -> None:
    value = FOUND[name]

    blob = docs.blob("node", "Doc", name, "body")

    assert (blob.kind, blob.size, blob.uri) == ("managed", len(value), None)
    assert (blob.etag[0], blob.etag[-1], len(blob.etag)) == ('"', '"', 34)
    assert blob.read() == value
    for start, end in ((0, 1), (0, None), (len(value) // 2, None), (len(value) - 1, len(value) + 9)):
        if 0 <= start < len(value):
            assert blob.read(start, end) == value[start:end]


@pytest.mark.case("surfaces", 580)
def test_a_long_value_comes_in_pieces(docs: Graph, tmp_path: Path) -> None:
    blob = docs.blob("node", "Doc", "five", "body")

    pieces = list(blob.stream())
    blob.save(tmp_path / "five.bin")

    assert [len(piece) for piece in pieces] == [PIECE_BYTES, FIVE - PIECE_BYTES]
    assert b"".join(pieces) == VALUES["five"] == (tmp_path / "five.bin").read_bytes()
    assert b"".join(blob.stream(7, PIECE_BYTES + 9)) == FOUND["five"][7 : PIECE_BYTES + 9]


@pytest.mark.case("surfaces", 580)
@pytest.mark.parametrize("name", FOUND)
def test_a_value_of_an_edge_is_as_one_of_a_node(cited: Graph, name: str, tmp_path: Path) -> None:
    ids, value = ids_of_edges(cited), FOUND[name]

    blob = cited.blob("edge", "Cites", ids[name], "proof")
    blob.save(tmp_path / "saved")

    assert (blob.kind, blob.size, blob.uri, len(blob.etag)) == ("managed", len(value), None, 34)
    assert blob.read() == b"".join(blob.stream()) == (tmp_path / "saved").read_bytes() == value
    assert blob.read(len(value) // 2, len(value) + 9) == value[len(value) // 2 :]
    with pytest.raises(BlobRangeError):
        blob.read(len(value) or 1)
    with pytest.raises(NotFoundError, match="it is null"):
        cited.blob("edge", "Cites", ids["null"], "proof")


@pytest.mark.case("surfaces", 580)
def test_a_range_must_begin_inside_of_the_value(docs: Graph) -> None:
    short, empty = (docs.blob("node", "Doc", name, "body") for name in ("short", "empty"))

    for start, end in ((256, None), (256, 256), (300, 400)):
        with pytest.raises(BlobRangeError) as caught:
            short.stream(start, end)
        assert (caught.value.start, caught.value.end, caught.value.length) == (start, end, 256)
    assert str(caught.value) == "range [300, 400) outside a value of length 256"
    assert short.read(3, 3) == empty.read() == empty.read(0, 5) == b""
    with pytest.raises(BlobRangeError, match=r"range \[1, \) outside a value of length 0"):
        empty.read(1)


@pytest.mark.case("surfaces", 581)
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda g: g.blob("node", "Doc", "null", "body"),
            NotFoundError,
            "Doc 'null' has no body: it is null",
        ),
        (lambda g: g.blob("node", "Doc", "nobody", "body"), EntityNotFound, "Doc 'nobody' not found"),
        (lambda g: g.blob("node", "Doc", "\ud800", "body"), EntityNotFound, "not found"),
        (lambda g: g.blob("node", "Dok", "one", "body"), BadRequest, "unknown type"),
        (lambda g: g.blob("edge", "Doc", "one", "body"), BadRequest, "unknown type"),
        (lambda g: g.blob("row", "Doc", "one", "body"), BadRequest, "'node' or 'edge', not 'row'"),
        (lambda g: g.blob("node", "Doc", "one", "boddy"), BadRequest, "no property 'boddy'.*body"),
        (lambda g: g.blob("node", "Doc", "one", "note"), BadRequest, r"Doc.note is String\?, not a Blob"),
        (lambda g: g.blob("node", "Doc", 1, "body"), BadRequest, "four texts"),
        (lambda g: g.blob("node", "Doc", "one", "body").read(-1), BadRequest, "from 0 on, not -1"),
        (lambda g: g.blob("node", "Doc", "one", "body").read(0, True), BadRequest, "from 0 on, not True"),
        (lambda g: g.blob("node", "Doc", "one", "body").read(1, 0), BadRequest, "cannot end at 0"),
    ],
)
def test_what_is_no_value_is_refused(
    docs: Graph, call: Callable[[Graph], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        call(docs)

    assert type(caught.value) is error


@pytest.mark.case("surfaces", 581)
def test_no_byte_of_a_value_is_read_before_it_is_asked_for(docs: Graph) -> None:
    store = internals(docs).parts.store
    docs.blob("node", "Doc", "one", "body")
    before = store.io_stats().read_bytes

    blob = docs.blob("node", "Doc", "five", "body")

    assert blob.size == FIVE
    assert store.io_stats().read_bytes - before < 100_000


@pytest.mark.case("surfaces", 582)
def test_branches_snapshots_and_bound_handles_show_their_own_bytes(docs: Graph) -> None:
    first = docs.snapshot()
    view = docs.at(first)
    docs.create_branch("other")
    change = mutation('update Doc set { body: $b } where name = "one"', "$b: Blob")
    docs.mutate(change, params={"b": b"of main"})
    docs.mutate(change, params={"b": b"of other"}, branch="other")
    kept = docs.blob("node", "Doc", "one", "body", snapshot=first.head.graph_commit_id)

    with docs.branch("other") as bound:
        assert bound.blob("node", "Doc", "one", "body").read() == b"of other"
    assert docs.blob("node", "Doc", "one", "body").read() == b"of main"
    assert docs.blob("node", "Doc", "one", "body", branch="other").read() == b"of other"
    assert view.blob("node", "Doc", "one", "body").read() == b"x" == kept.read()
    assert kept.commit_id == first.head.graph_commit_id
    assert docs.blob("node", "Doc", "one", "body", snapshot=kept.commit_id) == kept


@pytest.mark.case("surfaces", 582)
def test_an_etag_changes_with_the_bytes_and_not_without_a_write_of_the_row(docs: Graph) -> None:
    def etag(name: str = "one") -> str:
        return docs.blob("node", "Doc", name, "body").etag

    first, others = etag(), [etag(name) for name in FOUND if name != "one"]
    assert len({first, *others}) == len(others) + 1
    with reopen(docs) as again:
        assert again.blob("node", "Doc", "one", "body").etag == first
    docs.mutate(mutation('update Doc set { note: "n" } where name = "five"'))
    assert etag() == first
    seen = {first}
    for value in (b"y", b"z", b"x"):
        change = mutation('update Doc set { body: $b } where name = "one"', "$b: Blob")
        docs.mutate(change, params={"b": value})
        assert etag() not in seen
        seen.add(etag())


@pytest.mark.case("surfaces", 582)
def test_a_blob_that_is_held_survives_optimize_and_cleanup(
    docs: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    first = docs.snapshot()
    blob = docs.blob("node", "Doc", "five", "body")
    docs.load_tables({"Doc": table({"more": b"more"})}, "append", index=False)
    docs.optimize()
    docs.mutate(mutation('delete Doc where name = "five"'))

    docs.cleanup(keep=1, older_than=0)

    assert blob.read() == VALUES["five"]
    with pytest.raises(EntityNotFound):
        docs.blob("node", "Doc", "five", "body")
    del blob
    gc.collect()
    docs.cleanup(keep=1, older_than=0)
    with pytest.raises(omnigraph.HistoricalVersionReclaimed):
        docs.blob("node", "Doc", "five", "body", snapshot=first)


@pytest.mark.case("surfaces", 581)
def test_a_blob_of_a_closed_graph_reads_nothing(docs: Graph) -> None:
    blob = docs.blob("node", "Doc", "short", "body")

    docs.close()

    with pytest.raises(omnigraph.HandleClosed):
        blob.read()


def test_the_values_of_the_fixture_are_whole(docs: Graph) -> None:
    assert held(docs) == expected()
