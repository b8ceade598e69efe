"""`/blob`: exact bytes, ranges, conditions, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.engine.blobs.steps import FIVE, VALUES, documents
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import TOKENS, error_of

VALUE = VALUES["short"]
assert VALUE is not None
SHORT: bytes = VALUE
CELL = {"entity": "node", "type": "Doc", "id": "short", "property": "body"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("served-blobs") / "graph"
    documents(place).close()
    return place


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[httpx.Client]:
    with serving_app(settings_for(root)) as client:
        yield client


def get(client: httpx.Client, name: str = "short", /, method: str = "GET", **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.request(method, "/blob", params={**CELL, "id": name}, headers=given)


@pytest.mark.case("surfaces", 584)
@pytest.mark.parametrize("name", [name for name, value in VALUES.items() if value is not None])
def test_a_value_comes_whole(client: httpx.Client, name: str) -> None:
    answer, again = get(client, name), get(client, name)

    assert answer.status_code == 200
    assert answer.content == VALUES[name]
    assert answer.headers["content-type"] == "application/octet-stream"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["etag"] == again.headers["etag"]
    commit = client.get("/commits?limit=1").json()["commits"][0]["graph_commit_id"]
    assert answer.headers["omnigraph-snapshot-id"] == commit


@pytest.mark.case("surfaces", 584)
@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ("bytes=2-5", 2, 6),
        ("bytes=2-", 2, 256),
        ("bytes=-3", 253, 256),
        ("bytes=-999", 0, 256),
        ("bytes=0-999", 0, 256),
        ("bytes=0-99999999999999999999999", 0, 256),
        ("Bytes = 255-255", 255, 256),
    ],
)
def test_a_range_of_bytes(client: httpx.Client, given: str, start: int, end: int) -> None:
    answer = get(client, range=given)

    assert answer.status_code == 206
    assert answer.content == SHORT[start:end]
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/256"


@pytest.mark.case("surfaces", 584)
@pytest.mark.parametrize(
    "given",
    [
        "bytes=5-2",
        "bytes=0-1,3-4",
        "items=0-1",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "0-1",
        "bytes=1-2-3",
        "bytes=+1-2",
    ],
)
def test_what_is_no_range_is_ignored(client: httpx.Client, given: str) -> None:
    assert (get(client, range=given).status_code, get(client, range=given).content) == (200, SHORT)


@pytest.mark.case("surfaces", 584)
def test_two_fields_of_ranges_are_ignored(client: httpx.Client) -> None:
    answer = client.get("/blob", params=CELL, headers=[("Range", "bytes=0-1"), ("Range", "bytes=2-3")])

    assert (answer.status_code, answer.content) == (200, SHORT)


@pytest.mark.case("surfaces", 584)
@pytest.mark.parametrize(
    ("name", "given", "length"),
    [
        ("short", "bytes=256-", 256),
        ("short", "bytes=300-400", 256),
        ("short", "bytes=99999999999999999999999-", 256),
        ("short", "bytes=-0", 256),
        ("empty", "bytes=0-0", 0),
        ("empty", "bytes=-5", 0),
    ],
)
def test_a_range_outside_of_the_value(client: httpx.Client, name: str, given: str, length: int) -> None:
    answer = get(client, name, range=given)

    error_of(answer, 416, "bad_request")
    body = answer.json()
    assert answer.headers["content-range"] == f"bytes */{length}"
    assert answer.headers["omnigraph-error"] == "BlobRangeError"
    assert set(body["blob_range"]) == {"start", "end", "length"}
    assert body["blob_range"]["length"] == length


@pytest.mark.case("surfaces", 585)
def test_conditions_are_weighed_in_their_order(client: httpx.Client) -> None:
    etag = get(client).headers["etag"]
    other = f'"{"0" * 32}"'

    def status(**headers: str) -> int:
        return get(client, **headers).status_code

    for failing in (other, f"W/{etag}", "unreadable", "", f"{etag} {etag}", f"{other}, W/{etag}"):
        answer = get(client, if_match=failing, if_none_match=etag, range="bytes=0-1")
        assert etag in error_of(answer, 412, "conflict")
        assert answer.headers["etag"] == etag
    for holding in (etag, "*", f"{other}, {etag}"):
        assert status(if_match=holding) == 200
        assert status(if_match=holding, if_none_match=f"W/{etag}") == 304
        assert status(if_match=holding, range="bytes=0-1", if_none_match=other) == 206
    for known in (etag, f"W/{etag}", "*", f"{other},{etag}"):
        answer = get(client, if_none_match=known, range="bytes=999-")
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
    assert status(if_none_match=other) == status(if_none_match="unreadable") == 200
    assert status(range="bytes=0-1", if_range=etag) == 206
    for stale in (other, f"W/{etag}", "Wed, 21 Oct 2015 07:28:00 GMT"):
        assert get(client, range="bytes=0-1", if_range=stale).content == SHORT
        assert status(range="bytes=999-", if_range=stale) == 200


@pytest.mark.case("surfaces", 586)
def test_head_has_the_headers_alone(client: httpx.Client) -> None:
    whole, head = get(client, "five"), get(client, "five", method="HEAD", range="bytes=0-1")

    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) == FIVE
    same = ("etag", "content-type", "accept-ranges", "omnigraph-snapshot-id", "omnigraph-blob-kind")
    assert [head.headers[name] for name in same] == [whole.headers[name] for name in same]
    assert get(client, "five", method="HEAD", if_none_match=head.headers["etag"]).status_code == 304
    assert get(client, "five", method="HEAD", if_match='"x"').status_code == 412
    assert get(client, "null", method="HEAD").status_code == 404
    assert get(client, "empty", method="HEAD").headers["content-length"] == "0"


@pytest.mark.case("surfaces", 586)
def test_what_names_no_value_is_refused(client: httpx.Client) -> None:
    def asked(**changed: str) -> httpx.Response:
        return client.get("/blob", params={**CELL, **changed})

    error_of(asked(id="null"), 404, "not_found")
    error_of(asked(id="nobody"), 404, "not_found")
    error_of(asked(branch="nowhere"), 404, "not_found")
    error_of(asked(snapshot="nothing"), 404, "not_found")
    for wrong in (
        {"property": "note"},
        {"property": "x"},
        {"type": "Dok"},
        {"entity": "row"},
        {"entity": "edge"},
    ):
        error_of(asked(**wrong), 400, "bad_request")
    error_of(asked(branch="main", snapshot="x"), 400, "bad_request")
    for missing in CELL:
        error_of(
            client.get("/blob", params={k: v for k, v in CELL.items() if k != missing}), 400, "bad_request"
        )


@pytest.mark.case("surfaces", 586)
def test_a_value_is_for_callers_that_may_read(root: Path) -> None:
    with serving_app(settings_for(root, tokens=TOKENS)) as client:
        headers = {"Authorization": f"Bearer {TOKENS['act-mira']}"}
        error_of(client.get("/blob", params=CELL), 401, "unauthorized")
        answer = client.get("/graphs/default/blob", params=CELL, headers=headers)

    assert (answer.status_code, answer.content) == (200, SHORT)


@pytest.mark.case("surfaces", 587)
def test_readers_that_go_or_stop_reading_leave_nothing_behind(client: httpx.Client) -> None:
    for _ in range(20):  # more than may be under way at a time
        with client.stream("GET", "/blob", params={**CELL, "id": "five"}) as answer:
            assert len(next(answer.iter_raw(1))) == 1

    assert get(client, "five").content == VALUES["five"]
