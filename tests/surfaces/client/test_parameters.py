"""Parameters of Python's own types: a server gets what a graph in its storage would take."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.graph.stored_files import given_queries
from omnigraph.server.serving import Serving
from tests.support.commands import write
from tests.support.http_app import listening, settings_for
from tests.support.scripted import serving

SCHEMA = """\
node Member {
    handle: String @key
    born: Date?
    joined: DateTime?
    days: [Date]?
    spot: Vector(2)?
    body: Blob?
}
"""
ADD = """\
query add($h: String, $b: Date?, $j: DateTime?, $d: [Date]?, $s: Vector(2)?, $f: Blob?) {
    insert Member { handle: $h, born: $b, joined: $j, days: $d, spot: $s, body: $f }
}
"""
READ = """\
query one($j: DateTime) {
    match { $m: Member { joined: $j } }
    return { $m.handle, $m.born, $m.joined, $m.days, $m.spot }
}
"""
JOINED = datetime(2024, 2, 29, 23, 59, 59, 999000, UTC)
VALUES: dict[str, object] = {
    "b": date(1977, 9, 5),
    "j": JOINED,
    "d": (date(1977, 9, 5), date(1979, 3, 5)),
    "s": (0.5, 1),
    "f": bytearray(b"xyz"),
}
REFUSED: list[Mapping[Any, object]] = [
    {"h": b"xyz"},
    {"h": date(2020, 1, 1)},
    {"h": {"a"}},
    {"h": {"a": object()}},
    {"h": object()},
    {"h": "\ud800"},
    {"h": "x", "j": b"xyz"},
    {"h": "x", "b": float("nan")},
    {"h": "x", "s": [float("nan"), 1.0]},
    {"h": "x", "s": [10**5000, 1.0]},
    {"h": "x", "d": [date(2020, 1, 1), [1]]},
    {"h": "x", 5: "y"},
    {"h": "x", "\ud800": "y"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parameters")
    write(folder, "stored.gq", ADD + READ)
    for name in ("here", "there"):
        omnigraph.init(folder / name, SCHEMA).close()
    return folder


@pytest.fixture(scope="module")
def there(folder: Path) -> Iterator[RemoteGraph]:
    serving = Serving.begin(settings_for(folder / "there", queries=given_queries(folder / "stored.gq")))
    try:
        with listening(serving) as url, omnigraph.connect(url) as graph:
            assert isinstance(graph, RemoteGraph)
            yield graph
    finally:
        serving.close()


@pytest.mark.case("surfaces", 781)
def test_values_of_python_are_what_they_are_in_storage(folder: Path, there: RemoteGraph) -> None:
    found = []
    with omnigraph.open(folder / "here") as here:
        for graph in (here, there):
            graph.mutate(ADD, params={"h": "b1", **VALUES})
            blob = graph.blob("node", "Member", "b1", "body").read()
            found.append((graph.query(READ, params={"j": JOINED}).rows, blob))

    assert found[0] == found[1]
    assert len(found[0][0]) == 1
    there.invoke("add", {"h": "b2", **VALUES, "j": None})
    assert there.blob("node", "Member", "b2", "body").read() == b"xyz"
    stored = there.invoke("one", {"j": JOINED})
    assert isinstance(stored, omnigraph.Result)
    assert stored.rows == found[0][0]


@pytest.mark.case("surfaces", 781)
@pytest.mark.parametrize("params", REFUSED, ids=range(len(REFUSED)))
def test_what_fits_no_type_is_refused_as_in_storage(params: Mapping[str, object], folder: Path) -> None:
    with omnigraph.open(folder / "here") as here, pytest.raises(omnigraph.ParameterError) as expected:
        here.mutate(ADD, params=params)
    with (
        serving() as script,
        script.remote() as graph,
        pytest.raises(omnigraph.ParameterError) as error,
    ):
        graph.mutate(ADD, params=params)

    assert (str(error.value), error.value.name) == (str(expected.value), expected.value.name)
    assert script.asked == []


@pytest.mark.case("surfaces", 781)
def test_of_a_query_that_is_not_listed_a_value_has_the_type_that_it_is() -> None:
    from omnigraph.client.sent_params import sent_params

    values = {"a": b"xyz", "b": [date(1977, 9, 5)], "c": JOINED, "d": memoryview(b"")}
    assert sent_params(values, lambda: None) == {
        "a": "base64:eHl6",
        "b": ["1977-09-05"],
        "c": "2024-02-29T23:59:59.999Z",
        "d": "base64:",
    }
    for refused in ({"a": {1}}, {"a": float("inf")}, {"a": [10**5000]}, {"a": object()}, 5):
        given: Any = refused
        with pytest.raises(omnigraph.ParameterError):
            sent_params(given, lambda: None)
