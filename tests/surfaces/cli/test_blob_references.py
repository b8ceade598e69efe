"""`omnigraph blob` of a reference: where its bytes are, of a graph's storage and of a server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.references.steps import S3, images
from tests.support.commands import Outcome
from tests.support.http_app import serving_app, settings_for
from tests.support.in_process import invoke

pytestmark = pytest.mark.case("surfaces", 738)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reference-command") / "graph"
    images(place).close()
    return place


@pytest.fixture(scope="module", params=["storage", "server"])
def address(request: pytest.FixtureRequest, root: Path) -> Iterator[tuple[str, str]]:
    """How the graph is named: by its storage, and by its server."""
    if request.param == "storage":
        yield "--store", str(root)
        return
    with serving_app(settings_for(root)) as client:
        yield "--server", str(client.base_url)


def blob(address: tuple[str, str], verb: str, *flags: str, cwd: Path) -> Outcome:
    return invoke("blob", verb, "node", "Book", "a", "cover", *flags, *address, "--quiet", cwd=cwd)


@pytest.mark.parametrize("flags", [(), ("--offset", "3", "--length", "2")])
def test_bytes_of_a_reference_are_elsewhere(
    address: tuple[str, str], tmp_path: Path, flags: tuple[str, ...]
) -> None:
    out = tmp_path / "out.bin"
    out.write_bytes(b"before")

    printed = blob(address, "get", *flags, cwd=tmp_path)
    saved = blob(address, "get", *flags, "--out", str(out), cwd=tmp_path)

    assert (printed.code, printed.stdout) == (saved.code, saved.stdout) == (1, "")
    for outcome in (printed, saved):
        assert f"'{S3}' is a reference to bytes elsewhere" in outcome.stderr
        assert "'omnigraph blob stat' describes what is stored" in outcome.stderr
    assert out.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [out]


def test_a_reference_is_described(address: tuple[str, str], tmp_path: Path) -> None:
    described = json.loads(blob(address, "stat", "--json", cwd=tmp_path).stdout)
    plain = blob(address, "stat", cwd=tmp_path).stdout

    assert (described["kind"], described["size"], described["uri"]) == ("external", None, S3)
    assert [line.split() for line in plain.splitlines()] == [
        ["kind", "external"],
        ["etag", described["etag"]],
        ["uri", S3],
        ["commit", described["graph_commit_id"]],
    ]
