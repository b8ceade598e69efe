"""`omnigraph commit` and `omnigraph snapshot`: looking at history, which changes nothing."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from tests.support.atlas import ATLAS, GRAPH, commits, digest, head, place_atlas
from tests.support.commands import write
from tests.support.groups import together_in_line
from tests.support.http_app import serving_app, settings_for
from tests.support.in_process import document, invoke

COMMIT_FIELDS = {
    "graph_commit_id",
    "manifest_branch",
    "manifest_version",
    "parent_commit_id",
    "merged_parent_commit_id",
    "actor_id",
    "created_at",
}


def rename(folder: Path, name: str, *arguments: str) -> dict[str, Any]:
    """Make one commit, and return it."""
    params = json.dumps({"code": "VGR-1", "name": name})
    words = ["rename", "--query", "atlas.gq", "--params", params]
    done: dict[str, Any] = document("mutate", *words, "--store", GRAPH, *arguments, cwd=folder)
    commit: dict[str, Any] = done["commit"]
    return commit


def moment(commit: dict[str, Any], *, plus: int = 0) -> str:
    """Return when a commit was made, as ISO text in UTC."""
    return datetime.fromtimestamp((commit["created_at"] + plus) / 1e6, UTC).isoformat()


@pytest.mark.case("surfaces", 64)
def test_commits_are_listed_newest_first_and_the_first_one_has_no_parent(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    last = rename(tmp_path, "Voyager")

    listed = document("commit", "list", GRAPH, cwd=tmp_path)["commits"]

    assert listed[0] == last
    assert [commit["parent_commit_id"] for commit in listed] == [
        *(commit["graph_commit_id"] for commit in listed[1:]),
        None,
    ]
    assert [commit["created_at"] for commit in listed] == sorted(
        (commit["created_at"] for commit in listed), reverse=True
    )


@pytest.mark.case("engine", 345)
def test_a_commit_has_the_documented_fields_and_a_message_only_if_it_was_given(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    plain, noted = rename(tmp_path, "A"), rename(tmp_path, "B", "--message", "fix")

    assert plain.keys() == COMMIT_FIELDS
    assert noted.keys() == COMMIT_FIELDS | {"message"}
    assert noted["message"] == "fix"
    assert plain["manifest_branch"] is None
    assert abs(plain["created_at"] / 1e6 - datetime.now(UTC).timestamp()) < 3_600


@pytest.mark.case("engine", 345)
def test_commits_are_listed_in_aligned_columns(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    commit = rename(tmp_path, "A", "--as", "act-mira", "--message", "one\ntwo")

    title, first, *others = invoke("commit", "list", GRAPH, cwd=tmp_path).stdout.splitlines()

    assert title.split() == ["commit", "version", "time", "branch", "actor", "message"]
    assert first.split()[0] == commit["graph_commit_id"]
    assert first.index("act-mira") == title.index("actor")
    assert first.endswith("  one …")
    assert len(others) == 3


@pytest.mark.case("surfaces", 65)
@pytest.mark.parametrize("is_served", [False, True])
def test_filters_keep_what_fits(tmp_path: Path, is_served: bool) -> None:
    graph = place_atlas(tmp_path)
    mira, tomas = rename(tmp_path, "A", "--as", "act-mira"), rename(tmp_path, "B", "--as", "act-tomas")
    if is_served:
        with serving_app(settings_for(graph)) as client:
            assert_filters(tmp_path, mira, tomas, graph=str(client.base_url))
    else:
        assert_filters(tmp_path, mira, tomas, graph=GRAPH)


def assert_filters(folder: Path, mira: dict[str, Any], tomas: dict[str, Any], *, graph: str) -> None:
    """Look at what each filter leaves of the commits, of which the two given ones are the newest."""
    everything = commits(folder, graph=graph)

    def found(*filters: str) -> list[dict[str, Any]]:
        return commits(folder, *(word for text in filters for word in ("--filter", text)), graph=graph)

    assert found("actor=act-mira") == [mira]
    assert found("actor=omnigraph:maintenance") == [everything[2]]
    assert found("actor=nobody") == []
    assert found("branch=main") == everything
    assert found("branch=other") == []
    assert found("merge=false") == everything
    assert found("merge=true") == []
    assert found(f"since={moment(mira)}") == [tomas, mira]
    assert found(f"until={moment(mira)}") == everything[1:]
    assert found(f"since={moment(mira, plus=1)}") == [tomas]
    assert found(f"since={moment(mira)}", f"until={moment(mira)}") == [mira]
    assert found(f"since={moment(mira)}", "actor=act-tomas") == [tomas]
    assert found("actor=act-mira", "actor=act-tomas") == []
    assert invoke("commit", "list", graph, "--filter", "bogus=1", cwd=folder).code == 2


def test_a_day_alone_means_all_of_it_in_utc(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    everything = commits(tmp_path)
    first, last = moment(everything[-1])[:10], moment(everything[0])[:10]

    assert commits(tmp_path, "--filter", f"since={first}", "--filter", f"until={last}") == everything
    assert commits(tmp_path, "--filter", "since=2999-01-01") == []
    assert commits(tmp_path, "--filter", "until=1999-12-31") == []


def test_an_offset_counts_and_without_one_the_time_is_utc(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    newest = commits(tmp_path)[0]
    at = datetime.fromtimestamp(newest["created_at"] / 1e6, UTC)

    bare = at.replace(tzinfo=None).isoformat()
    shifted = at.replace(tzinfo=None).isoformat() + "+01:00"

    assert commits(tmp_path, "--filter", f"since={bare}") == [newest]
    assert commits(tmp_path, "--filter", f"since={shifted}")[0] == newest
    assert len(commits(tmp_path, "--filter", f"since={shifted}")) > 1


@pytest.mark.parametrize(
    "text", ["bogus=1", "actor", "=x", "merge=yes", "since=yesterday", "until=2026-13-01"]
)
def test_a_filter_that_cannot_be_read_exits_with_2(text: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke("commit", "list", GRAPH, "--filter", text, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "--filter" in outcome.stderr


def test_a_limit_counts_what_the_filters_left(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    mine = [rename(tmp_path, name, "--as", "act-mira") for name in ("A", "B", "C")]
    rename(tmp_path, "D")

    assert commits(tmp_path, "--filter", "actor=act-mira", "--limit", "2") == [mine[2], mine[1]]
    assert commits(tmp_path, "--limit", "0") == []
    assert invoke("commit", "list", GRAPH, "--limit", "0", cwd=tmp_path).stdout == "no commits\n"
    assert invoke("commit", "list", GRAPH, "--limit", "-1", cwd=tmp_path).code == 2
    assert invoke("commit", "list", GRAPH, "--limit", "few", cwd=tmp_path).code == 2


@pytest.mark.case("engine", 345)
@pytest.mark.case("surfaces", 67)
def test_a_commit_is_shown_the_same_however_the_graph_is_named(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    commit = rename(tmp_path, "A", "--as", "act-mira", "--message", "first\nsecond")
    commit_id = commit["graph_commit_id"]
    spellings = [
        ("commit", "show", commit_id, "--store", GRAPH),
        ("commit", "show", GRAPH, commit_id),
        ("commit", "show", "--uri", GRAPH, commit_id),
    ]

    shown = [invoke(*words, cwd=tmp_path) for words in spellings]
    documents = [document(*words, cwd=tmp_path) for words in spellings]
    unknown = invoke("commit", "show", GRAPH, "01ARZ3NDEKTSV4RRFFQ69G5FAV", cwd=tmp_path)

    assert shown[0].code == 0
    assert shown == [shown[0]] * 3
    assert documents == [commit] * 3
    assert "actor   act-mira\n" in shown[0].stdout
    assert shown[0].stdout.endswith("\n\n    first\n    second\n")
    assert (unknown.code, unknown.stdout) == (1, "")
    assert "01ARZ3NDEKTSV4RRFFQ69G5FAV" in unknown.stderr


def test_showing_a_commit_takes_one_id(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    assert invoke("commit", "show", cwd=tmp_path).code == 2
    assert invoke("commit", "show", "a", "b", "c", cwd=tmp_path).code == 2
    assert invoke("commit", "show", head(tmp_path), cwd=tmp_path).code == 1


@pytest.mark.case("surfaces", 84)
def test_a_snapshot_has_every_type_also_the_empty_ones(tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)
    invoke("init", GRAPH, "--schema", "atlas.pg", cwd=tmp_path)
    empty = document("snapshot", GRAPH, cwd=tmp_path)
    words = ["--data", "-", "--mode", "append", "--no-index"]
    invoke("load", GRAPH, *words, cwd=tmp_path, stdin='{"type": "Mission", "data": {"title": "Saturn"}}')

    loaded = document("snapshot", GRAPH, cwd=tmp_path)

    def counts(snapshot: dict[str, Any]) -> dict[str, int]:
        return {table["table_key"]: table["row_count"] for table in snapshot["tables"]}

    assert counts(empty) == {"edge:Flew": 0, "node:Craft": 0, "node:Mission": 0}
    assert counts(loaded) == {"edge:Flew": 0, "node:Craft": 0, "node:Mission": 1}
    assert {name: loaded[name] for name in ("branch", "manifest_version", "internal_schema_version")} == {
        "branch": "main",
        "manifest_version": 2,
        "internal_schema_version": 4,
    }
    for table in loaded["tables"]:
        assert table.keys() == {"table_key", "table_path", "table_version", "table_branch", "row_count"}
        assert (tmp_path / GRAPH / table["table_path"]).is_dir()
        assert table["table_branch"] is None


def test_a_snapshot_for_people_says_version_format_and_rows(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    printed = invoke("snapshot", GRAPH, cwd=tmp_path).stdout.splitlines()

    assert printed[0] == f"branch main at version 3, commit {head(tmp_path)}"
    assert printed[1] == "internal-schema 4"
    assert [line.split()[::3] for line in printed[4:]] == [
        ["edge:Flew", "3"],
        ["node:Craft", "3"],
        ["node:Mission", "2"],
    ]


@pytest.mark.parametrize(
    "arguments",
    [["commit", "list"], ["snapshot"], ["index", "status"], ["recovery", "list"]],
    ids=" ".join,
)
def test_looking_writes_nothing(arguments: list[str], tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    before = digest(graph)

    assert invoke(*arguments, GRAPH, cwd=tmp_path).code == 0
    assert digest(graph) == before


@pytest.mark.parametrize(
    "arguments",
    [["commit", "list"], ["commit", "show"], ["snapshot"], ["index", "status"], ["index", "ensure"]],
    ids=" ".join,
)
def test_a_branch_that_does_not_exist_is_named(arguments: list[str], tmp_path: Path) -> None:
    place_atlas(tmp_path)
    commit_id = [head(tmp_path)] if arguments[-1] == "show" else []

    missing = invoke(*arguments, GRAPH, *commit_id, "--branch", "june", cwd=tmp_path)
    main = invoke(*arguments, GRAPH, *commit_id, "--branch", "main", cwd=tmp_path)

    assert (missing.code, missing.stdout) == (1, "")
    assert "branch 'june' not found" in missing.stderr
    assert main.code == 0


def test_there_is_no_command_for_runs(tmp_path: Path) -> None:
    outcome = invoke("run", "list", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "No such command 'run'" in outcome.stderr


@pytest.mark.case("surfaces", 452)
@pytest.mark.case("surfaces", 453)
def test_a_commit_of_several_mutations_lists_them_and_is_found_by_each_actor(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    text = 'query {name}() {{ update Craft set {{ name: "{name}" }} where code = "VGR-1" }}'
    with omnigraph.open(graph) as opened:
        together_in_line(
            opened,
            lambda: opened.mutate(text.format(name="first"), actor="act-mira", message="one\nmore"),
            lambda: opened.mutate(text.format(name="second"), actor="act-tomas"),
            lambda: opened.mutate(text.format(name="third")),
        )

    (commit,) = commits(tmp_path, "--limit", "1")
    operations = [("act-mira", "first", "one\nmore"), ("act-tomas", "second", None), (None, "third", None)]
    assert commit["actor_id"] is None
    assert commit["operations"] == [
        {
            "actor_id": actor,
            "query_name": name,
            "message": message,
            "affected_nodes": 1,
            "affected_edges": 0,
        }
        for actor, name, message in operations
    ]
    for actor in ("act-mira", "act-tomas"):
        assert commits(tmp_path, "--filter", f"actor={actor}")[0] == commit
    assert commit not in commits(tmp_path, "--filter", "actor=nobody")
    assert all("operations" not in other for other in commits(tmp_path)[1:])
    shown = invoke("commit", "show", commit["graph_commit_id"], "--store", GRAPH, cwd=tmp_path).stdout
    assert [line.split()[:4] for line in shown.splitlines()[-4:]] == [
        ["operation", "actor", "nodes", "edges"],
        ["first", "act-mira", "1", "0"],
        ["second", "act-tomas", "1", "0"],
        ["third", "-", "1", "0"],
    ]
    listed = invoke("commit", "list", GRAPH, "--limit", "1", cwd=tmp_path).stdout
    assert "act-mira, act-tomas, -" in listed
