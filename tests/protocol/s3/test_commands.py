"""The commands on a graph in an S3-compatible store: the same words, and consent before an overwrite."""

import json
from pathlib import Path
from socket import gethostname

import pytest

from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot
from tests.support.atlas import ATLAS, MUTATIONS, SEED, SEED_ROWS, commits, lines, row_counts
from tests.support.commands import Outcome, write
from tests.support.http_server import running_server
from tests.support.in_process import invoke

pytestmark = pytest.mark.slow

RENAME = ("rename", "--query", "atlas.gq", "--params", '{"code": "VGR-1", "name": "Voyager"}')


@pytest.fixture
def folder(tmp_path: Path, root: GraphRoot) -> Path:
    """Write schema, queries and seed, and make a graph with the seed in it."""
    write(tmp_path, "atlas.pg", ATLAS)
    write(tmp_path, "atlas.gq", MUTATIONS)
    write(tmp_path, "seed.jsonl", lines(*SEED))
    assert invoke("init", root.uri, "--schema", "atlas.pg", cwd=tmp_path).code == 0
    assert load(tmp_path, root, "append").code == 0
    return tmp_path


def load(folder: Path, root: GraphRoot, mode: str, *flags: str) -> Outcome:
    """Load the seed."""
    return invoke("load", root.uri, "--data", "seed.jsonl", "--mode", mode, *flags, cwd=folder)


def test_the_line_about_the_target_says_that_it_is_remote(folder: Path, root: GraphRoot) -> None:
    outcome = load(folder, root, "merge")

    assert outcome.code == 0
    assert outcome.stderr == f"omnigraph load → {root.uri} (direct, remote)\n"


def test_one_command_after_the_other_may_write(folder: Path, root: GraphRoot) -> None:
    first = invoke("mutate", *RENAME, "--store", root.uri, "--as", "act-mira", cwd=folder)
    second = invoke("mutate", *RENAME, "--store", root.uri, "--as", "act-tomas", cwd=folder)

    assert (first.code, second.code) == (0, 0)
    listed = commits(folder, graph=root.uri)
    assert [commit["actor_id"] for commit in listed[:2]] == ["act-tomas", "act-mira"]
    assert row_counts(folder, root.uri) == SEED_ROWS


def test_an_overwrite_needs_consent(folder: Path, root: GraphRoot) -> None:
    before = commits(folder, graph=root.uri)

    refused = load(folder, root, "overwrite")
    between = commits(folder, graph=root.uri)
    allowed = load(folder, root, "overwrite", "--yes")

    assert (refused.code, refused.stdout) == (1, "")
    assert "--yes" in refused.stderr
    assert between == before
    assert allowed.code == 0
    assert len(commits(folder, graph=root.uri)) == len(before) + 2


def test_a_place_inside_of_a_cluster_is_refused(tmp_path: Path, root: GraphRoot) -> None:
    write(tmp_path, "atlas.pg", ATLAS)
    open_adapter(root, Durability.FULL).write_text("__cluster/state.json", "{}")

    outcome = invoke("init", f"{root.uri}/graphs/x.omni", "--schema", "atlas.pg", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "cluster apply" in outcome.stderr


@pytest.mark.case("surfaces", 221)
def test_a_load_is_refused_beside_a_server_alone_that_is_the_only_writer(
    folder: Path, root: GraphRoot, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with running_server(root.uri, log=log):
        beside = load(folder, root, "merge")
    before = commits(folder, graph=root.uri)
    with running_server(root.uri, log=log, OMNIGRAPH_WRITERS="one") as server:
        refused = load(folder, root, "merge")
        query = "query q() { match { $c: Craft } return { $c.code } }"
        read = invoke("query", "--store", root.uri, "-e", query, "--json", cwd=folder)
    between = commits(folder, graph=root.uri)
    after = load(folder, root, "merge")

    assert beside.code == 0, beside
    assert (refused.code, refused.stdout) == (1, "")
    assert f"held by {gethostname()} (pid {server.process.pid})" in refused.stderr
    assert between == before
    assert read.code == 0, read
    assert json.loads(read.stdout)["row_count"] == SEED_ROWS["node:Craft"]
    assert after.code == 0, after
    assert commits(folder, graph=root.uri) != before
    assert row_counts(folder, root.uri) == SEED_ROWS


@pytest.mark.case("surfaces", 245)
@pytest.mark.parametrize("place", ["_schema.pg", "deep/er/out.jsonl"])
def test_an_export_into_a_graph_is_refused(folder: Path, root: GraphRoot, place: str) -> None:
    before = open_adapter(root, Durability.FULL).read_text("_schema.pg")

    inside = invoke("export", root.uri, "--out", f"{root.uri}/{place}", cwd=folder)
    beside = invoke("export", root.uri, "--out", f"{root.uri}-out/{place}", cwd=folder)

    assert (inside.code, beside.code) == (1, 0)
    assert f"it lies inside the graph {root.uri}" in inside.stderr
    assert open_adapter(root, Durability.FULL).read_text("_schema.pg") == before
