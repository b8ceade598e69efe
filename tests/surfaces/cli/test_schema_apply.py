"""`omnigraph schema apply` and `branch upgrade`: other schemas for graphs and their branches."""

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.core.failpoint import ENVIRONMENT
from tests.support.commands import SCHEMA, Outcome, omnigraph, write
from tests.support.in_process import invoke
from tests.support.seam import internals

ADDED = SCHEMA.replace("    mass_kg: F64?\n", "    mass_kg: F64?\n    orbit: String?\n")
INDEXED = SCHEMA.replace("    mass_kg: F64?\n", "    mass_kg: F64? @index\n    orbit: String? @index\n")
RETYPED = SCHEMA.replace("mass_kg: F64?", "mass_kg: F32?")
NO_MASS = SCHEMA.replace("    mass_kg: F64?\n", "")
DEFAULTED = SCHEMA.replace("    mass_kg: F64?\n", "    mass_kg: F64?\n    crew: I32 @default(3)\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a graph of two crafts, without indexes."""
    write(tmp_path, "old.pg", SCHEMA)
    write(
        tmp_path,
        "rows.jsonl",
        '{"type": "Craft", "data": {"code": "A", "name": "Ada", "mass_kg": 1.5}}\n'
        '{"type": "Craft", "data": {"code": "B", "name": "Ben"}}\n',
    )
    assert run(tmp_path, "init", "g.omni", "--schema", "old.pg").code == 0
    assert run(tmp_path, "load", "g.omni", "--data", "rows.jsonl", "--mode", "append", "--no-index").code == 0
    return tmp_path


def run(folder: Path, *words: str, **environment: str) -> Outcome:
    return omnigraph(*words, cwd=folder, **environment) if environment else invoke(*words, cwd=folder)


def apply(folder: Path, schema: str, *flags: str, **environment: str) -> Outcome:
    """Apply a schema to the graph."""
    write(folder, "new.pg", schema)
    return run(folder, "schema", "apply", "g.omni", "--schema", "new.pg", *flags, **environment)


def document(outcome: Outcome) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(outcome.stdout)
    return loaded


def commits(folder: Path, *flags: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document(run(folder, "commit", "list", "g.omni", "--json", *flags))[
        "commits"
    ]
    return found


def orbits(folder: Path) -> Outcome:
    text = "query q() { match { $c: Craft } return { $c.code, $c.orbit } order { $c.code } }"
    return run(folder, "query", "--store", "g.omni", "-e", text, "--format", "csv")


def schema(folder: Path, *flags: str) -> str:
    return run(folder, "schema", "show", "g.omni", *flags).stdout


@pytest.mark.case("surfaces", 72)
def test_an_unsupported_plan_changes_nothing_and_an_added_property_reads_null(folder: Path) -> None:
    before = commits(folder)

    refused = apply(folder, RETYPED)

    assert refused.code == 1
    assert "[OG-MF-106]" in refused.stderr
    assert (commits(folder), schema(folder)) == (before, SCHEMA)
    applied = apply(folder, ADDED, "--no-index")
    assert applied.code == 0
    assert orbits(folder).stdout.split() == ["c.code,c.orbit", "A,null", "B,null"]
    assert schema(folder) == ADDED


@pytest.mark.case("surfaces", 73)
@pytest.mark.case("surfaces", 273)
def test_an_unchanged_schema_applies_nothing(folder: Path) -> None:
    before = commits(folder)

    outcome, told = apply(folder, "// the same\n" + SCHEMA), apply(folder, SCHEMA, "--json")

    assert outcome.code == 0
    assert "applied: no" in outcome.stdout
    assert document(told) | {"manifest_version": 0} == {
        "uri": document(told)["uri"],
        "branch": "main",
        "supported": True,
        "applied": False,
        "manifest_version": 0,
        "step_count": 0,
        "steps": [],
        "commit": None,
        "index_commit": None,
        "pending_indexes": [],
        "warnings": [],
        "notes": [],
    }
    assert commits(folder) == before


@pytest.mark.case("surfaces", 74)
def test_branches_keep_their_schema_and_stand_in_the_way_only_of_an_exclusive_change(folder: Path) -> None:
    assert run(folder, "branch", "create", "g.omni", "june").code == 0
    before = commits(folder)

    refused = apply(folder, ADDED, "--exclusive")

    assert refused.code == 1
    assert "found: june" in refused.stderr
    assert (commits(folder), schema(folder)) == (before, SCHEMA)
    assert apply(folder, ADDED, "--no-index").code == 0
    assert (schema(folder), schema(folder, "--branch", "june")) == (ADDED, SCHEMA)


@pytest.mark.case("surfaces", 464)
def test_a_schema_that_was_made_from_an_older_one_is_refused(folder: Path) -> None:
    base = commits(folder)[0]["graph_commit_id"]
    insert = write(folder, "c.gq", 'query c() { insert Craft { code: "C", name: "Cy" } }')
    assert run(folder, "mutate", "--store", "g.omni", "c", "--query", str(insert)).code == 0
    assert apply(folder, ADDED, "--no-index", "--base", base).code == 0  # rows are no schema

    refused = apply(folder, INDEXED, "--base", base)

    assert refused.code == 1
    assert f"changed after {base}: make the change again on the schema that it has now" in refused.stderr
    assert schema(folder) == ADDED


@pytest.mark.case("surfaces", 217)
def test_the_index_build_is_a_commit_of_its_own(folder: Path) -> None:
    told = document(apply(folder, INDEXED, "--json"))

    first, second = commits(folder)[1], commits(folder)[0]
    assert told["commit"]["graph_commit_id"] == first["graph_commit_id"]
    assert told["index_commit"]["graph_commit_id"] == second["graph_commit_id"]
    assert second["actor_id"] == "omnigraph:maintenance"
    before = len(commits(folder))
    told = document(
        apply(folder, INDEXED.replace("name: String", "name: String @index"), "--no-index", "--json")
    )
    assert (told["applied"], told["index_commit"]) == (True, None)
    assert len(commits(folder)) == before + 1


@pytest.mark.case("surfaces", 217)
def test_a_failing_index_build_is_a_warning(folder: Path) -> None:
    place = {ENVIRONMENT: "schema_apply.post_unlock_pre_index=raise"}

    outcome = apply(folder, INDEXED, "--json", **place)

    assert outcome.code == 0
    told = document(outcome)
    assert (told["applied"], told["index_commit"]) == (True, None)
    assert told["warnings"]
    assert {found["property"] for found in told["pending_indexes"]} >= {"orbit", "mass_kg"}
    assert "warning:" in outcome.stderr


@pytest.mark.case("surfaces", 222)
def test_the_message_of_a_change_is_shown(folder: Path) -> None:
    assert apply(folder, ADDED, "--message", "why not", "--as", "eve", "--no-index").code == 0

    newest = commits(folder)[0]
    assert (newest["message"], newest["actor_id"]) == ("why not", "eve")
    shown = run(folder, "commit", "show", "g.omni", newest["graph_commit_id"])
    assert "why not" in shown.stdout
    assert apply(folder, SCHEMA, "--message", "x" * 4097).code == 1
    assert schema(folder) == ADDED


@pytest.mark.case("surfaces", 270)
def test_a_plan_against_a_graph_tells_the_rows_that_it_writes(folder: Path) -> None:
    write(folder, "new.pg", DEFAULTED)
    before = commits(folder)

    plain = run(folder, "schema", "plan", "g.omni", "--schema", "new.pg")
    told = document(run(folder, "schema", "plan", "g.omni", "--schema", "new.pg", "--json"))

    assert plain.code == 0
    assert "2 rows" in plain.stdout
    assert [step["rows"] for step in told["steps"]] == [2]
    assert (commits(folder), schema(folder)) == (before, SCHEMA)
    assert run(folder, "branch", "create", "g.omni", "june").code == 0
    assert apply(folder, DEFAULTED, "--branch", "june", "--no-index").code == 0
    planned = run(folder, "schema", "plan", "g.omni", "--schema", "new.pg", "--branch", "june", "--json")
    assert document(planned)["steps"] == []


@pytest.mark.case("surfaces", 271)
def test_a_branch_has_its_own_schema_until_it_is_merged(folder: Path) -> None:
    assert run(folder, "branch", "create", "g.omni", "june").code == 0

    told = document(apply(folder, ADDED, "--branch", "june", "--no-index", "--json"))

    assert told["branch"] == "june"
    assert (schema(folder), schema(folder, "--branch", "june")) == (SCHEMA, ADDED)
    assert run(folder, "branch", "merge", "g.omni", "june").code == 0
    assert (schema(folder), schema(folder, "--branch", "june")) == (ADDED, ADDED)


@pytest.mark.case("surfaces", 272)
@pytest.mark.case("surfaces", 273)
def test_a_branch_is_upgraded_to_the_schema_of_main(folder: Path) -> None:
    assert run(folder, "branch", "create", "g.omni", "june").code == 0
    assert apply(folder, ADDED, "--no-index").code == 0

    first = run(folder, "branch", "upgrade", "g.omni", "june", "--message", "new orbit")
    second = run(folder, "branch", "upgrade", "g.omni", "june")
    told = document(run(folder, "branch", "upgrade", "g.omni", "june", "--json"))

    assert (first.code, second.code) == (0, 0)
    assert "new orbit" in [found.get("message") for found in commits(folder, "--branch", "june")]
    assert "as commit" in first.stdout
    assert "already" in second.stdout
    assert (told["applied"], told["commit"], told["branch"]) == (False, None, "june")
    assert schema(folder, "--branch", "june") == ADDED
    assert run(folder, "branch", "upgrade", "g.omni", "main").code == 1


@pytest.mark.case("surfaces", 272)
def test_an_upgrade_that_would_lose_values_is_refused(folder: Path) -> None:
    assert run(folder, "branch", "create", "g.omni", "june").code == 0
    update = 'query q() { update Craft set { mass_kg: 9.0 } where code = "A" }'
    assert run(folder, "mutate", "--store", "g.omni", "--branch", "june", "-e", update).code == 0
    assert apply(folder, NO_MASS, "--no-index").code == 0

    refused = run(folder, "branch", "upgrade", "g.omni", "june")

    assert refused.code == 1
    assert "dropped_property" in refused.stderr
    assert schema(folder, "--branch", "june") == SCHEMA


HINTED = SCHEMA.replace("name: String", 'name: String @rename_from("label")')


@pytest.mark.case("surfaces", 325)
def test_a_hint_without_effect_is_told_as_a_plan_tells_it(folder: Path) -> None:
    write(folder, "new.pg", HINTED)
    planned = run(folder, "schema", "plan", "g.omni", "--schema", "new.pg", "--json")

    applied = apply(folder, HINTED, "--json")

    assert "ignored exact match hint" in planned.stderr
    assert applied.stderr.endswith(planned.stderr)
    assert document(applied)["notes"] == document(planned)["notes"] != []
    with og.open(folder / "g.omni") as graph:
        (note,) = graph.apply_schema(HINTED).diagnostics
    assert "ignored exact match hint" in note.text


@pytest.mark.case("surfaces", 326)
@pytest.mark.case("languages", 262)
@pytest.mark.parametrize("empty", ["", "// nothing is left\n"])
def test_a_schema_without_any_type_is_refused_unless_data_may_be_lost(folder: Path, empty: str) -> None:
    before = (commits(folder), schema(folder))

    outcome = apply(folder, empty)
    planned = run(folder, "schema", "plan", "g.omni", "--schema", "new.pg", "--json")

    assert outcome.code == 1
    assert "--allow-data-loss" in outcome.stderr
    assert document(planned)["supported"] is False
    assert [step["entity"] for step in document(planned)["steps"]] == ["schema"]
    assert (commits(folder), schema(folder)) == before

    assert apply(folder, empty, "--allow-data-loss").code == 0
    assert schema(folder).strip() == empty.strip()
    assert apply(folder, empty).code == 0, "there is nothing left to drop"


@pytest.mark.case("surfaces", 324)
def test_a_file_has_no_branches_to_plan_against(folder: Path) -> None:
    outcome = run(folder, "schema", "plan", "--from", "old.pg", "--schema", "old.pg", "--branch", "june")

    assert outcome.code == 2
    assert "--branch" in outcome.stderr


@pytest.mark.case("surfaces", 323)
@pytest.mark.parametrize("number", ["1_0", "\u0661\u0660", " 10", "+10", "1e1", "10.0", "", "9" * 5_000])
@pytest.mark.parametrize(
    "words",
    [
        ("cleanup", "g.omni", "--keep"),
        ("commit", "list", "g.omni", "--limit"),
        ("recovery", "list", "g.omni", "--limit"),
        ("changes", "poll", "g.omni", "--limit"),
        ("clone", "g.omni", "copy.omni", "--depth"),
        ("repair", "g.omni", "--to"),
        ("embed", "g.omni", "--batch"),
    ],
)
def test_a_whole_number_is_plain_digits(words: tuple[str, ...], number: str, tmp_path: Path) -> None:
    outcome = invoke(*words, number, cwd=tmp_path)

    assert outcome.code == 2
    assert f"Invalid value for '{words[-1]}'" in outcome.stderr


@pytest.mark.case("surfaces", 462)
def test_a_hard_drop_says_which_rows_it_writes(folder: Path) -> None:
    write(folder, "new.pg", NO_MASS)

    (step,) = document(
        run(folder, "schema", "plan", "g.omni", "--schema", "new.pg", "--allow-data-loss", "--json")
    )["steps"]
    plain = run(folder, "schema", "plan", "g.omni", "--schema", "new.pg", "--allow-data-loss")
    quiet = apply(folder, ADDED, "--quiet")
    applied = apply(folder, NO_MASS, "--allow-data-loss", "--json")

    assert (step["work"], step["rows"], step["mode"]) == ("rewrite", 2, "hard")
    assert "writes what stays of 2 rows" in plain.stdout
    assert quiet.stderr == ""
    assert applied.code == 0
    events = [json.loads(line)["progress"] for line in applied.stderr.splitlines() if line.startswith("{")]
    assert [(event["operation"], event["table_key"], event["done"]) for event in events] == [
        ("schema apply", "node:Craft", False),
        ("schema apply", "node:Craft", True),
    ]


@pytest.mark.case("surfaces", 463)
def test_an_upgrade_takes_over_a_hard_drop_if_it_may_lose_data(folder: Path) -> None:
    for name in ("june", "july"):
        assert run(folder, "branch", "create", "g.omni", name).code == 0
    assert apply(folder, NO_MASS, "--allow-data-loss", "--no-index").code == 0

    assert run(folder, "branch", "upgrade", "g.omni", "june", "--allow-data-loss").code == 0
    assert run(folder, "branch", "upgrade", "g.omni", "july").code == 0

    with og.open(folder / "g.omni", mode="ro") as graph:
        columns = {}
        for name in ("june", "july"):
            dataset = internals(graph).parts.open(graph.snapshot(name).entry("node:Craft"))._dataset
            (file,) = dataset.get_fragments()[0].metadata.files
            columns[name] = len(file.fields) - len(dataset.schema.names)
    assert columns == {"june": 0, "july": 1}


RENAMED = SCHEMA.replace("mass_kg: F64?", 'weight: F64? @rename_from("mass_kg")')


def read(folder: Path, column: str, *flags: str) -> Outcome:
    """Read one property of every craft."""
    text = f"query q() {{ match {{ $c: Craft }} return {{ $c.code, $c.{column} }} order {{ $c.code }} }}"
    return run(folder, "query", "--store", "g.omni", "-e", text, "--format", "csv", *flags)


def data_files(folder: Path) -> set[Path]:
    return set((folder / "g.omni").rglob("*.lance"))


@pytest.mark.case("surfaces", 75)
def test_a_renamed_property_keeps_its_values_and_loses_its_name(folder: Path) -> None:
    assert apply(folder, RENAMED, "--no-index").code == 0

    assert read(folder, "weight").stdout.split() == ["c.code,c.weight", "A,1.5", "B,null"]
    refused = read(folder, "mass_kg")
    assert refused.code == 1
    assert "mass_kg" in refused.stderr
    update = 'query q() { update Craft set { weight: 2.5 } where code = "B" }'
    assert run(folder, "mutate", "--store", "g.omni", "-e", update).code == 0
    assert read(folder, "weight").stdout.split()[2] == "B,2.5"


@pytest.mark.case("surfaces", 76)
@pytest.mark.parametrize("flags", [(), ("--allow-data-loss",)])
def test_a_dropped_property_stays_in_the_past_unless_it_is_dropped_for_good(
    folder: Path, flags: tuple[str, ...]
) -> None:
    past = commits(folder)[0]["graph_commit_id"]

    assert apply(folder, NO_MASS, "--no-index", *flags).code == 0

    assert read(folder, "mass_kg").code == 1
    before = read(folder, "mass_kg", "--snapshot", past)
    if flags:
        assert before.code == 1
        assert "1.5" not in before.stdout
    else:
        assert before.stdout.split() == ["c.code,c.mass_kg", "A,1.5", "B,null"]


@pytest.mark.case("surfaces", 77)
def test_an_enum_takes_more_values_without_a_rewrite_and_never_fewer(folder: Path) -> None:
    few, many = (
        SCHEMA.replace("    mass_kg: F64?\n", f"    mass_kg: F64?\n    state: enum({values})?\n")
        for values in ("new, old", "new, old, lost")
    )
    assert apply(folder, few, "--no-index").code == 0
    files = data_files(folder)

    widened = document(apply(folder, many, "--no-index", "--json"))

    assert [step["kind"] for step in widened["steps"]] == ["extend_enum"]
    assert {path for path in data_files(folder) - files if "__manifest" not in path.parts} == set()
    update = 'query q() { update Craft set { state: "lost" } where code = "A" }'
    assert run(folder, "mutate", "--store", "g.omni", "-e", update).code == 0
    assert read(folder, "state").stdout.split() == ["c.code,c.state", "A,lost", "B,null"]
    write(folder, "new.pg", few)
    planned = document(run(folder, "schema", "plan", "g.omni", "--schema", "new.pg", "--json"))
    assert planned["supported"] is False
    assert apply(folder, few).code == 1
    assert schema(folder) == many


@pytest.mark.case("surfaces", 78)
def test_a_corrected_schema_applies_at_once_after_a_failed_one(folder: Path) -> None:
    assert apply(folder, ADDED, "--no-index").code == 0
    assert apply(folder, ADDED.replace("mass_kg: F64?", "mass_kg: F32?")).code == 1

    corrected = apply(folder, ADDED.replace("name: String", "name: String @index"), "--json")

    assert corrected.code == 0, corrected
    assert document(corrected)["applied"] is True
    assert read(folder, "mass_kg").stdout.split() == ["c.code,c.mass_kg", "A,1.5", "B,null"]
