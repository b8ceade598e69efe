"""`omnigraph load`: what each mode does, what is refused, and that a refused load leaves nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.atlas import (
    GRAPH,
    SEED,
    SEED_ROWS,
    commits,
    craft,
    flew,
    head,
    lines,
    mission,
    place_atlas,
    row_counts,
    rows,
)
from tests.support.commands import Outcome, omnigraph, write
from tests.support.in_process import document, invoke

BOOM = "load.post_publish_pre_index=raise"


def load(folder: Path, mode: str, *arguments: str, data: str | bytes | None = None) -> Outcome:
    """Run load with some data, or with arguments that name it."""
    given = () if data is None else ("--data", write(folder, "data.jsonl", data).name)
    return invoke("load", GRAPH, "--mode", mode, *given, *arguments, cwd=folder)


def table_versions(folder: Path) -> dict[str, int]:
    """Return where every table stands."""
    tables = document("snapshot", GRAPH, cwd=folder)["tables"]
    return {table["table_key"]: table["table_version"] for table in tables}


@pytest.mark.case("surfaces", 11)
def test_a_load_needs_a_mode(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke("load", GRAPH, "--data", "seed.jsonl", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "--mode" in outcome.stderr


@pytest.mark.case("surfaces", 12)
def test_a_missing_file_fails_the_load_and_adds_no_commit(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)

    outcome = load(tmp_path, "merge", "--data", "missing.jsonl")

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "missing.jsonl" in outcome.stderr
    assert commits(tmp_path) == before


@pytest.mark.case("surfaces", 13)
def test_append_of_new_rows_is_one_commit_by_the_caller_with_counts_per_table(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)
    data = lines(craft("CAS-1"), craft("CAS-2"), mission("Saturn"))

    outcome = load(tmp_path, "append", "--as", "act-mira", data=data)

    assert outcome.code == 0
    assert "node:Craft       2\n" in outcome.stdout
    assert "node:Mission     1\n" in outcome.stdout
    added = commits(tmp_path)[: -len(before)]
    assert [commit["actor_id"] for commit in added] == ["act-mira"]
    assert row_counts(tmp_path) == {"node:Craft": 5, "node:Mission": 3, "edge:Flew": 3}


@pytest.mark.case("surfaces", 14)
def test_append_of_an_existing_key_names_table_and_id_and_loads_nothing(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)

    outcome = load(tmp_path, "append", data=lines(craft("CAS-1"), craft("VGR-1")))

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "node:Craft already has id 'VGR-1'" in outcome.stderr
    assert (commits(tmp_path), row_counts(tmp_path)) == (before, SEED_ROWS)


@pytest.mark.case("surfaces", 15)
def test_merging_a_file_twice_changes_no_count(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    data = lines(craft("VGR-1", mass_kg=1.5), craft("CAS-1"))

    first = load(tmp_path, "merge", data=data)
    counted = row_counts(tmp_path)
    second = load(tmp_path, "merge", data=data)

    assert (first.code, second.code) == (0, 0)
    assert counted == SEED_ROWS | {"node:Craft": 4}
    assert row_counts(tmp_path) == counted


@pytest.mark.case("surfaces", 16)
def test_overwrite_replaces_the_types_it_names_or_fails_whole_where_edges_would_dangle(
    tmp_path: Path,
) -> None:
    graph = place_atlas(tmp_path)
    missions = rows(graph, "Mission")
    kept = [craft("VGR-1"), craft("VGR-2"), craft("GLL-1"), craft("NEW-1")]

    replaced = load(tmp_path, "overwrite", data=lines(*kept))
    counted = row_counts(tmp_path)
    dangling = load(tmp_path, "overwrite", data=lines(craft("NEW-1")))

    assert replaced.code == 0
    assert counted == SEED_ROWS | {"node:Craft": 4}
    assert rows(graph, "Mission") == missions
    assert {row["mass_kg"] for row in rows(graph, "Craft")} == {None}
    assert (dangling.code, dangling.stdout) == (1, "")
    assert "not found in Craft" in dangling.stderr
    assert row_counts(tmp_path) == counted


@pytest.mark.case("surfaces", 17)
def test_a_malformed_line_is_named_and_no_table_moves(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = table_versions(tmp_path)
    data = lines(craft("CAS-1"), craft("CAS-2")) + '{"type": "Craft", "data": \n' + lines(mission("Saturn"))

    outcome = load(tmp_path, "merge", data=data)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "line 3" in outcome.stderr
    assert table_versions(tmp_path) == before


@pytest.mark.case("surfaces", 18)
@pytest.mark.parametrize(
    ("record", "named"),
    [
        ('{"type": "Craft", "data": {"code": "X-1", "name": "x", "colour": "red"}}', "colour"),
        ('{"type": "Crafft", "data": {"code": "X-1", "name": "x"}}', "Crafft"),
        ('{"type": "Craft", "data": {"code": "X-1", "name": "x", "name": "y"}}', "name"),
        ('{"type": "Craft", "edge": "Flew", "data": {"code": "X-1", "name": "x"}}', "edge"),
    ],
    ids=["property", "type", "twice", "both"],
)
def test_a_record_that_says_something_unknown_is_refused_at_its_line(
    record: str, named: str, tmp_path: Path
) -> None:
    place_atlas(tmp_path)

    outcome = load(tmp_path, "merge", data=lines(craft("CAS-1")) + record + "\n")

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "line 2" in outcome.stderr
    assert named in outcome.stderr
    assert row_counts(tmp_path) == SEED_ROWS


@pytest.mark.case("surfaces", 19)
def test_an_edge_may_stand_before_its_nodes(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = load(tmp_path, "append", data=lines(flew("CAS-1", "Saturn"), craft("CAS-1"), mission("Saturn")))

    assert outcome.code == 0
    assert row_counts(tmp_path)["edge:Flew"] == 4


@pytest.mark.case("surfaces", 20)
def test_an_edge_to_a_missing_node_publishes_nothing_and_the_next_load_works(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)

    dangling = load(tmp_path, "append", data=lines(craft("CAS-1"), flew("CAS-1", "Saturn")))
    between = commits(tmp_path)
    whole = load(tmp_path, "append", data=lines(craft("CAS-1"), flew("CAS-1", "Saturn"), mission("Saturn")))

    assert (dangling.code, dangling.stdout) == (1, "")
    assert "'Saturn' not found in Mission" in dangling.stderr
    assert between == before
    assert whole.code == 0
    assert row_counts(tmp_path) == {"node:Craft": 4, "node:Mission": 3, "edge:Flew": 4}


@pytest.mark.case("surfaces", 21)
def test_blank_lines_and_carriage_returns_make_no_difference(tmp_path: Path) -> None:
    plain, spaced = tmp_path / "plain", tmp_path / "spaced"
    data = lines(craft("CAS-1", mass_kg=2.5), mission("Saturn"))

    place_atlas(plain)
    place_atlas(spaced)
    outcomes = [
        load(plain, "merge", data=data),
        load(spaced, "merge", data="\r\n\n" + data.replace("\n", "\r\n  \r\n")),
    ]

    assert [outcome.code for outcome in outcomes] == [0, 0]
    for type_name in ("Craft", "Mission"):
        assert rows(plain / GRAPH, type_name) == rows(spaced / GRAPH, type_name)


@pytest.mark.case("surfaces", 22)
def test_a_date_is_the_same_as_text_and_as_days(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    data = lines(craft("TXT-1", launched="2026-02-03"), craft("INT-1", launched=20_487))

    outcome = load(tmp_path, "append", data=data)

    assert outcome.code == 0
    stored = {row["code"]: row["launched"] for row in rows(graph, "Craft")}
    assert stored["TXT-1"] == stored["INT-1"]
    assert stored["TXT-1"].isoformat() == "2026-02-03"


@pytest.mark.case("surfaces", 24)
def test_data_may_come_through_a_pipe(tmp_path: Path) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    data = lines(craft("CAS-1"), mission("Saturn"))
    place_atlas(file)
    place_atlas(pipe)
    load(file, "merge", data=data)

    outcome = omnigraph("load", "--data", "-", "--mode", "merge", GRAPH, cwd=pipe, stdin=data)

    assert outcome.code == 0
    assert row_counts(pipe) == row_counts(file)
    for type_name in ("Craft", "Mission"):
        assert rows(pipe / GRAPH, type_name) == rows(file / GRAPH, type_name)


@pytest.mark.case("surfaces", 25)
def test_the_document_names_the_commit_of_the_load(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    load_arguments = ("load", GRAPH, "--data", "more.jsonl", "--mode", "overwrite")
    write(tmp_path, "more.jsonl", lines(*SEED[:3], craft("CAS-1")))

    outcome = omnigraph(*load_arguments, "--json", "--as", "act-mira", cwd=tmp_path)

    loaded: dict[str, Any] = json.loads(outcome.stdout)
    assert outcome.code == 0
    assert loaded["index_commit"]["actor_id"] == "omnigraph:maintenance"
    assert loaded["index_commit"]["parent_commit_id"] == loaded["commit"]["graph_commit_id"]
    assert loaded["index_commit"]["graph_commit_id"] == head(tmp_path)
    assert loaded["commit"]["actor_id"] == "act-mira"
    assert loaded == {
        "uri": GRAPH,
        "branch": "main",
        "mode": "overwrite",
        "base_branch": None,
        "branch_created": False,
        "tables": [{"table_key": "node:Craft", "rows_loaded": 4}],
        "actor_id": "act-mira",
        "commit": loaded["commit"],
        "index_commit": loaded["index_commit"],
        "pending_indexes": [],
        "warnings": [],
    }

    appended = document(
        "load", GRAPH, "--mode", "append", "--data", "-", cwd=tmp_path, stdin=lines(craft("X-1"))
    )

    assert appended["index_commit"] is None
    assert appended["commit"]["graph_commit_id"] == head(tmp_path)


@pytest.mark.case("surfaces", 26)
def test_the_target_is_named_on_stderr_only_and_not_at_all_when_quiet(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    arguments = ("load", GRAPH, "--data", "seed.jsonl", "--mode", "merge")

    usual = omnigraph(*arguments, cwd=tmp_path)
    quiet = omnigraph(*arguments, "--quiet", cwd=tmp_path)

    assert (usual.code, usual.stderr) == (0, f"omnigraph load → {GRAPH} (direct, local)\n")
    assert "→" not in usual.stdout
    assert (quiet.code, quiet.stderr) == (0, "")


def test_an_input_without_records_loads_nothing_and_succeeds(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)

    outcome = load(tmp_path, "merge", data="\n\n")
    loaded = document("load", GRAPH, "--mode", "merge", "--data", "data.jsonl", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (0, "no records in the input: nothing loaded into main\n")
    assert (loaded["tables"], loaded["commit"]) == ([], None)
    assert commits(tmp_path) == before


def test_several_violations_are_listed_up_to_a_screen(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    dangling = [flew("VGR-1", f"Nowhere {number}") for number in range(14)]

    outcome = load(tmp_path, "append", data=lines(*dangling))

    said = outcome.stderr.splitlines()[1:]
    assert said[0].startswith("execution error: line 1: ")
    assert [line.split(":")[0] for line in said[1:-1]] == [f"  line {number}" for number in range(2, 11)]
    assert said[-1] == "  and 4 more"


@pytest.mark.case("engine", 890)
def test_a_count_that_was_cut_short_says_at_least(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = load(tmp_path, "append", data="x\n" * 12_000)

    assert outcome.stderr.splitlines()[-1] == "  and at least 9,990 more"


def test_a_message_is_kept_with_the_commit(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    load(tmp_path, "append", "--message", "first light", data=lines(craft("CAS-1")))

    assert commits(tmp_path)[0]["message"] == "first light"


def test_a_message_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)

    outcome = load(tmp_path, "append", "--message", "x" * 4_097, data=lines(craft("CAS-1")))

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "4096 bytes" in outcome.stderr
    assert commits(tmp_path) == before


def test_a_branch_that_does_not_exist_is_never_made_by_accident(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = load(tmp_path, "merge", "--branch", "new", "--data", "seed.jsonl")

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "branch 'new' not found" in outcome.stderr


@pytest.mark.parametrize("actor", ["omnigraph:x", "omnigraph:recovery", " "])
def test_an_actor_of_the_engine_is_refused(actor: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)

    outcome = load(tmp_path, "merge", "--as", actor, "--data", "seed.jsonl")

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "actor" in outcome.stderr
    assert commits(tmp_path) == before


@pytest.mark.parametrize("engine", ["auto", "local"])
def test_the_other_engines_are_this_process(engine: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)

    assert load(tmp_path, "merge", "--engine", engine, "--data", "seed.jsonl").code == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--mode", "upsert", "--data", "seed.jsonl"], "upsert"),
        (["--mode", "merge"], "--data"),
        (["--mode", "merge", "--data", "seed.jsonl", "--engine", "hadoop"], "hadoop"),
        (["--mode", "merge", "--data", "-", "--data", "-"], "standard input"),
        (["--mode", "merge", "--data", "seed.jsonl", "extra"], "extra"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_in_usage_exits_with_2(arguments: list[str], named: str, tmp_path: Path) -> None:
    outcome = invoke("load", GRAPH, *arguments, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert named in outcome.stderr


def test_an_index_build_that_fails_is_a_warning(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "data.jsonl", lines(*SEED[:3]))
    arguments = ("load", GRAPH, "--mode", "overwrite", "--data", "data.jsonl", "--json", "--quiet")

    outcome = omnigraph(*arguments, cwd=tmp_path, OMNIGRAPH_FAILPOINTS=BOOM)

    loaded = json.loads(outcome.stdout)
    assert outcome.code == 0
    assert outcome.stderr.startswith("warning: ")
    assert {pending["table_key"] for pending in loaded["pending_indexes"]} == {"node:Craft"}
    assert all(pending["reason"] for pending in loaded["pending_indexes"])
    assert loaded["index_commit"] is None
    assert len(loaded["warnings"]) == 1


@pytest.mark.case("surfaces", 230)
def test_a_merge_prints_what_it_cleared(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    load(tmp_path, "merge", data=lines(craft("VGR-1", mass_kg=700.0), craft("VGR-2", mass_kg=720.0)))

    told = load(tmp_path, "merge", "--dry-run", data=lines(craft("VGR-1")))
    outcome = load(tmp_path, "merge", data=lines(craft("VGR-1")))
    found = document(
        *("load", GRAPH, "--mode", "merge", "--json", "--data"),
        write(tmp_path, "more.jsonl", lines(craft("VGR-2"))).name,
        cwd=tmp_path,
    )

    assert outcome.code == 0
    assert "warning: the load cleared values that its input lacks" in outcome.stderr
    assert "Craft.mass_kg: 1 existing row\n" in outcome.stderr
    assert "would clear" in told.stderr
    assert found["cleared"] == [{"table_key": "node:Craft", "property": "mass_kg", "rows": 1}]


@pytest.mark.case("surfaces", 231)
def test_strict_columns_refuse_a_merge_that_clears(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    load(tmp_path, "merge", data=lines(craft("VGR-1", mass_kg=700.0)))
    before = commits(tmp_path)

    outcome = load(tmp_path, "merge", "--strict-columns", data=lines(craft("VGR-1")))

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "would clear Craft.mass_kg of 1 row" in outcome.stderr
    assert commits(tmp_path) == before


@pytest.mark.case("surfaces", 242)
def test_the_document_of_a_refused_merge_lists_what_it_would_clear(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    load(tmp_path, "merge", data=lines(craft("VGR-1", mass_kg=700.0)))

    outcome = load(tmp_path, "merge", "--strict-columns", "--json", data=lines(craft("VGR-1")))

    printed = json.loads(outcome.stdout)
    assert (outcome.code, printed["code"]) == (1, "bad_request")
    assert printed["cleared"] == [{"table_key": "node:Craft", "property": "mass_kg", "rows": 1}]


@pytest.mark.case("surfaces", 664)
def test_embed_says_how_many_vectors_it_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    write(tmp_path, "notes.pg", "node Note { text: String @key  vector: Vector(3)? @embed(text) }\n")
    assert invoke("init", GRAPH, "--schema", "notes.pg", cwd=tmp_path).code == 0
    notes = lines(*({"type": "Note", "data": {"text": text}} for text in ("rain", "a choir")))

    dry = load(tmp_path, "append", "--embed", "--dry-run", "--json", data=notes)
    told = load(tmp_path, "append", "--embed", data=notes)
    again = load(tmp_path, "merge", "--embed", "--json", data=notes)

    assert "vectors" not in json.loads(dry.stdout)
    assert "\n2 vectors made from texts\n" in told.stdout
    assert json.loads(again.stdout)["vectors"] == 2
    assert len(commits(tmp_path)) == 4, "an empty graph, two loads, and the indexes of one"
