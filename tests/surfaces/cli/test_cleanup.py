"""`omnigraph cleanup`: what it previews, removes and refuses."""

import os
import time
from datetime import timedelta
from pathlib import Path

import click
import pytest

import omnigraph
from omnigraph.cli.durations import Duration
from omnigraph.core.failpoint import failpoint
from tests.engine.cleanup.steps import on_disk
from tests.support.atlas import GRAPH, place_atlas
from tests.support.engine import files, table_path
from tests.support.in_process import document, invoke

CRAFT = "node:Craft"


@pytest.fixture
def atlas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example graph after five further writes, with a branch from before them."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    root = place_atlas(tmp_path)
    with omnigraph.open(root, upkeep=False) as graph:
        for number in range(5):
            rename(graph, f"name {number}")
    return root


def rename(graph: omnigraph.Graph, name: str) -> None:
    graph.mutate(f'query q() {{ update Craft set {{ name: "{name}" }} where code = "VGR-1" }}')


def crafts(root: Path) -> list[int]:
    with omnigraph.open(root, mode="ro") as graph:
        return on_disk(table_path(graph, CRAFT))


@pytest.mark.case("surfaces", 101)
def test_without_a_limit_it_is_a_mistake_in_usage(atlas: Path, tmp_path: Path) -> None:
    outcome = invoke("cleanup", GRAPH, cwd=tmp_path)

    assert outcome.code == 2
    assert "give --keep, --older-than, or both" in outcome.stderr
    assert atlas.exists()


@pytest.mark.case("surfaces", 101)
@pytest.mark.case("surfaces", 256)
def test_a_preview_changes_no_file(atlas: Path, tmp_path: Path) -> None:
    before = files(atlas)

    ten = invoke("cleanup", GRAPH, "--keep", "10", cwd=tmp_path)
    one = invoke("cleanup", GRAPH, "--keep", "1", cwd=tmp_path)

    assert (ten.code, one.code) == (0, 0)
    assert "would remove" in one.stdout
    assert "add --confirm to do so" in one.stdout
    assert "keep=1 leaves fewer versions" in one.stderr
    assert files(atlas) == before


@pytest.mark.case("surfaces", 256)
def test_the_documents_of_preview_and_removal_differ_in_one_word(atlas: Path, tmp_path: Path) -> None:
    arguments = ("cleanup", GRAPH, "--keep", "1", "--json")
    commits = invoke("commit", "list", GRAPH, cwd=tmp_path).stdout

    preview = document(*arguments, cwd=tmp_path)
    done = document(*arguments, "--confirm", cwd=tmp_path)

    assert (preview.pop("dry_run"), done.pop("dry_run")) == (True, False)
    assert preview == done
    assert done["uri"] == GRAPH
    assert (done["keep_versions"], done["older_than_secs"]) == (1, None)
    rows = {row["table_key"]: row for row in done["tables"]}
    assert rows[CRAFT]["old_versions_removed"] >= 5
    assert rows[CRAFT].keys() == {"table_key", "bytes_removed", "old_versions_removed", "error"}
    assert "__manifest" in rows
    assert len(crafts(atlas)) == 1
    assert invoke("commit", "list", GRAPH, cwd=tmp_path).stdout == commits
    assert invoke("verify", GRAPH, cwd=tmp_path).code == 0


@pytest.mark.case("surfaces", 102)
def test_branches_stay_readable_and_removed_snapshots_say_so(atlas: Path, tmp_path: Path) -> None:
    with omnigraph.open(atlas, upkeep=False) as graph:
        removed = graph.commits(limit=1)[0].graph_commit_id
        rename(graph, "newer")
        graph.create_branch("review")
        rename(graph, "newest")
    source = 'query q() { match { $c: Craft  $c.code = "VGR-1" } return { $c.name } }'

    outcome = invoke("cleanup", GRAPH, "--keep", "1", "--confirm", cwd=tmp_path)

    assert (outcome.code, "removed" in outcome.stdout) == (0, True)
    for branch, name in (("review", "newer"), ("main", "newest")):
        found = invoke("query", "--store", GRAPH, "-e", source, "--branch", branch, cwd=tmp_path)
        assert name in found.stdout
    past = invoke("query", "--store", GRAPH, "-e", source, "--snapshot", removed, cwd=tmp_path)
    assert past.code == 1
    assert "was cleaned up" in past.stderr


@pytest.mark.case("surfaces", 228)
def test_after_a_day_the_manifest_is_trimmed_and_every_commit_stays_readable(
    atlas: Path, tmp_path: Path
) -> None:
    with omnigraph.open(atlas, upkeep=False) as graph:
        for number in range(8):
            rename(graph, f"more {number}")
        commits = [commit.graph_commit_id for commit in graph.commits()][:-1]  # the first one has no rows
    days_ago = time.time() - 2 * 86_400
    for path in (atlas / "__manifest" / "_versions").glob("*.manifest"):
        os.utime(path, (days_ago, days_ago))
    before = len(on_disk(atlas / "__manifest"))

    outcome = invoke("cleanup", GRAPH, "--keep", "100", "--confirm", cwd=tmp_path)

    assert outcome.code == 0
    assert len(on_disk(atlas / "__manifest")) == 10 < before
    source = "query q() { match { $c: Craft } return { count($c) as crafts } }"
    for commit_id in commits:
        found = invoke("query", "--store", GRAPH, "-e", source, "--snapshot", commit_id, cwd=tmp_path)
        assert found.code == 0


@pytest.mark.case("surfaces", 103)
@pytest.mark.case("surfaces", 258)
@pytest.mark.parametrize("text", ["7x", "", "-1d", "1.5h", "d", "9999w9", "99999999w", "7 d 3"])
def test_a_length_of_time_that_is_none_names_the_units(atlas: Path, tmp_path: Path, text: str) -> None:
    before = files(atlas)

    outcome = invoke("cleanup", GRAPH, "--older-than", text, "--confirm", cwd=tmp_path)

    assert outcome.code == 2
    assert "with s, m, h, d or w" in outcome.stderr
    assert files(atlas) == before


@pytest.mark.case("surfaces", 258)
def test_every_unit_is_understood() -> None:
    expected = {
        "90": timedelta(seconds=90),
        "0": timedelta(0),
        "90s": timedelta(seconds=90),
        "5m": timedelta(minutes=5),
        "12H": timedelta(hours=12),
        " 7d ": timedelta(days=7),
        "4w": timedelta(weeks=4),
    }

    assert {text: Duration().convert(text, None, None) for text in expected} == expected
    with pytest.raises(click.BadParameter):
        Duration().convert("7y", None, None)


@pytest.mark.case("surfaces", 258)
def test_no_versions_is_a_mistake_in_usage(atlas: Path, tmp_path: Path) -> None:
    assert invoke("cleanup", GRAPH, "--keep", "0", "--confirm", cwd=tmp_path).code == 2
    assert len(crafts(atlas)) > 5


def test_an_age_keeps_what_was_just_replaced(atlas: Path, tmp_path: Path) -> None:
    everyone = crafts(atlas)

    assert invoke("cleanup", GRAPH, "--older-than", "1h", "--confirm", cwd=tmp_path).code == 0
    assert crafts(atlas) == everyone

    assert invoke("cleanup", GRAPH, "--older-than", "0", "--confirm", cwd=tmp_path).code == 0
    assert crafts(atlas) == everyone[-1:]


@pytest.mark.case("surfaces", 105)
def test_a_preview_leaves_what_a_dead_writer_left_and_a_confirmed_run_settles_it(
    atlas: Path, tmp_path: Path
) -> None:
    graph = omnigraph.open(atlas, upkeep=False)
    with failpoint("write.post_finalize_pre_publisher", "raise"), pytest.raises(omnigraph.RecoveryRequired):
        rename(graph, "late")
    graph.close()
    before = files(atlas)

    preview = invoke("cleanup", GRAPH, "--keep", "1", cwd=tmp_path)

    assert preview.code == 1
    assert "reopen it read-write first, as any command that writes does" in preview.stderr
    assert files(atlas) == before

    assert invoke("cleanup", GRAPH, "--keep", "1", "--confirm", cwd=tmp_path).code == 0
    (recovered,) = document("recovery", "list", GRAPH, cwd=tmp_path)["recoveries"]
    assert (recovered["recovery_kind"], recovered["writer_kind"]) == ("rolled_forward", "mutation")
    assert len(crafts(atlas)) == 1


def test_a_table_that_fails_is_told_and_the_exit_code_says_so(atlas: Path, tmp_path: Path) -> None:
    with failpoint("cleanup.table_gc", "raise:once"):
        outcome = invoke("cleanup", GRAPH, "--keep", "1", "--confirm", cwd=tmp_path)

    assert outcome.code == 1
    assert "fault injected" in outcome.stdout
    assert invoke("cleanup", GRAPH, "--keep", "1", "--confirm", cwd=tmp_path).code == 0
    assert len(crafts(atlas)) == 1
