"""`omnigraph blob`: bytes and what they are, of a graph's storage and of a server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.blobs.steps import FIVE, VALUES, documents
from tests.support.commands import Outcome
from tests.support.http_app import serving_app, settings_for
from tests.support.in_process import invoke

pytestmark = pytest.mark.case("surfaces", 588)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("blob-command") / "graph"
    documents(place).close()
    return place


@pytest.fixture(scope="module", params=["storage", "server"])
def address(request: pytest.FixtureRequest, root: Path) -> Iterator[tuple[str, str]]:
    """How the graph is named: by its storage, and by its server."""
    if request.param == "storage":
        yield "--store", str(root)
        return
    with serving_app(settings_for(root)) as client:
        yield "--server", str(client.base_url)


def blob(address: tuple[str, str], verb: str, name: str, *flags: str, cwd: Path) -> Outcome:
    return invoke("blob", verb, "node", "Doc", name, "body", *flags, *address, "--quiet", cwd=cwd)


def test_bytes_go_to_standard_output_or_to_a_file(address: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out.bin"

    assert blob(address, "get", "one", cwd=tmp_path).stdout == "x"
    assert blob(address, "get", "empty", cwd=tmp_path) == Outcome(0, "", "")
    assert blob(address, "get", "empty", "--length", "5", cwd=tmp_path) == Outcome(0, "", "")
    assert blob(address, "get", "zeros", "--offset", "299998", "--length", "9", cwd=tmp_path).stdout == "\0\0"
    assert blob(address, "get", "five", "--out", str(out), cwd=tmp_path) == Outcome(0, "", "")
    assert out.read_bytes() == VALUES["five"]


@pytest.mark.parametrize(
    ("name", "flags", "code", "words"),
    [
        ("null", (), 1, "has no body: it is null"),
        ("nobody", (), 1, "Doc 'nobody' not found"),
        ("short", ("--offset", "256"), 1, "range [256, ) outside a value of length 256"),
        ("short", ("--length", "0"), 2, "0 is not in the range"),
        ("short", ("--offset", str(2**62), "--length", str(2**62)), 2, "pass the largest position"),
        ("short", ("--branch", "main", "--snapshot", "1"), 2, "cannot be combined"),
        ("short", ("--json",), 2, "blob stat describes them"),
    ],
)
def test_what_cannot_be_read_leaves_a_file_alone(
    address: tuple[str, str], tmp_path: Path, name: str, flags: tuple[str, ...], code: int, words: str
) -> None:
    out = tmp_path / "out.bin"
    out.write_bytes(b"before")

    outcome = blob(address, "get", name, *flags, "--out", str(out), cwd=tmp_path)

    assert outcome.code == code, outcome
    assert words in outcome.stderr
    assert out.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [out]


def test_a_value_is_described(address: tuple[str, str], tmp_path: Path) -> None:
    described = json.loads(blob(address, "stat", "five", "--json", cwd=tmp_path).stdout)
    plain = blob(address, "stat", "five", cwd=tmp_path).stdout
    past = blob(address, "stat", "five", "--json", "--snapshot", described["graph_commit_id"], cwd=tmp_path)

    assert (described["kind"], described["size"], described["uri"]) == ("managed", FIVE, None)
    words = {"kind": "managed", "size": str(FIVE), "etag": described["etag"]}
    assert [line.split() for line in plain.splitlines()] == [
        *map(list, words.items()),
        ["commit", described["graph_commit_id"]],
    ]
    assert json.loads(past.stdout) == described
    refused = blob(address, "stat", "null", "--json", cwd=tmp_path)
    assert refused.code == 1
    assert "is null" in json.loads(refused.stdout)["error"]
    assert blob(address, "stat", "five", "--branch", "nowhere", cwd=tmp_path).code == 1
