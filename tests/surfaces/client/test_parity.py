"""The same calls, embedded and through a server: equal rows, columns, values and exceptions."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.client.http import Http
from omnigraph.client.remote import embedded_only
from omnigraph.client.remote.embedded_only import EmbeddedOnly
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.remote.snapshot_view import RemoteSnapshotView
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.errors import UnsupportedError
from omnigraph.graph.graph import Graph
from omnigraph.graph.snapshot_view import SnapshotView
from omnigraph.graph.stored_files import given_queries
from omnigraph.server.serving import Serving
from tests.support.http_app import listening, settings_for
from tests.support.parity import STEPS, place_parity, told

SPECIFICATION = Path(__file__).parents[3] / "docs" / "spec" / "surfaces.md"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What every step gives on a graph in its storage."""
    folder = tmp_path_factory.mktemp("embedded")
    with omnigraph.open(place_parity(folder), queries=folder / "stored.gq") as graph:
        return [told(step, graph) for step in STEPS]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a server with a graph of its own."""
    queries = given_queries(tmp_path / "stored.gq")
    serving = Serving.begin(settings_for(place_parity(tmp_path), queries=queries))
    try:
        with listening(serving) as url:
            yield url
    finally:
        serving.close()


def differing(here: list[str], there: list[str]) -> list[tuple[str, str, str]]:
    return [
        (step.name, one, other) for step, one, other in zip(STEPS, here, there, strict=True) if one != other
    ]


@pytest.mark.case("surfaces", 189)
@pytest.mark.case("surfaces", 190)
@pytest.mark.case("surfaces", 722)
@pytest.mark.case("surfaces", 723)
@pytest.mark.case("surfaces", 724)
@pytest.mark.case("surfaces", 725)
@pytest.mark.case("surfaces", 726)
@pytest.mark.case("surfaces", 880)
@pytest.mark.case("surfaces", 882)
@pytest.mark.case("surfaces", 885)
@pytest.mark.case("surfaces", 886)
def test_a_server_gives_what_the_storage_gives(embedded: list[str], url: str) -> None:
    with omnigraph.connect(url) as graph:
        assert isinstance(graph, RemoteGraph)
        served = [told(step, graph) for step in STEPS]

    assert len(STEPS) >= 40
    assert differing(embedded, served) == []


# Nothing is forgotten


@pytest.mark.case("surfaces", 611)
@pytest.mark.parametrize(("here", "there"), [(Graph, RemoteGraph), (SnapshotView, RemoteSnapshotView)])
def test_every_public_name_of_a_graph_is_there_or_says_what_to_do(here: type, there: type) -> None:
    names = [name for name in dir(here) if not name.startswith("_")]
    missing = [name for name in names if inspect.getattr_static(there, name, None) is None]

    assert missing == [], "give RemoteGraph the method, or name it as EmbeddedOnly"


@pytest.mark.case("surfaces", 611)
@pytest.mark.parametrize(("here", "there"), [(Graph, RemoteGraph), (SnapshotView, RemoteSnapshotView)])
def test_methods_take_the_same_arguments(here: type, there: type) -> None:
    differing = {}
    for name in dir(here):
        one, other = (inspect.getattr_static(of, name, None) for of in (here, there))
        if name.startswith("_") or not inspect.isfunction(one) or isinstance(other, EmbeddedOnly):
            continue
        assert inspect.isfunction(other), name
        if (takes := _takes(one)) != _takes(other):
            differing[name] = takes, _takes(other)

    assert differing == {}


def _takes(method: Callable[..., object]) -> list[tuple[str, object, object]]:
    return [(it.name, it.kind, it.default) for it in inspect.signature(method).parameters.values()]


@pytest.mark.case("surfaces", 611)
@pytest.mark.case("surfaces", 668)
def test_what_is_embedded_only_says_what_to_do() -> None:
    on_storage = [name for name, value in vars(RemoteGraph).items() if isinstance(value, EmbeddedOnly)]

    with RemoteGraph(Http(ServerUrl.parse("http://127.0.0.1:1"), None)) as graph:
        for name in on_storage:
            with pytest.raises(
                UnsupportedError, match=f"^{name} is not for a graph behind a server: [a-z]+ .{{12}}"
            ):
                getattr(graph, name)()
        with pytest.raises(UnsupportedError, match="optimize is not for a graph behind a server: open the"):
            graph.optimize(branch="june")
        with pytest.raises(UnsupportedError, match="a server takes no actor, because it knows you"):
            graph.delete_branch("june", actor="act-mira")
        with pytest.raises(
            UnsupportedError, match=r"a server takes no embed, .* run 'omnigraph embed' where"
        ):
            graph.load(b"", "append", embed=True)
    assert "optimize" in on_storage


@pytest.mark.case("surfaces", 684)
def test_the_specification_lists_what_a_server_does_not_take() -> None:
    said = re.search(
        r"^\*\*On storage alone\*\* are (.+?):(.+?):", SPECIFICATION.read_text(), re.MULTILINE | re.DOTALL
    )
    assert said is not None
    methods, arguments = (sorted(re.findall(r"`(\w+)`", part)) for part in said.groups())

    refused = [name for name, value in vars(RemoteGraph).items() if isinstance(value, EmbeddedOnly)]
    assert methods == sorted(refused)
    assert [name for name in arguments if name != "UnsupportedError"] == sorted(embedded_only._REASONS)
