"""`omnigraph schema plan`: the steps from one file to another."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.atlas import digest
from tests.support.commands import SCHEMA, Outcome, omnigraph, write

ADDED = SCHEMA.replace("    mass_kg: F64?\n", "    mass_kg: F64?\n    orbit: String?\n")
RETYPED = SCHEMA.replace("mass_kg: F64?", "mass_kg: F32?")
REQUIRED = SCHEMA.replace("mass_kg: F64?", "mass_kg: F64?\n    orbit: String")
DROPPED = "node Craft {\n    code: String @key\n    name: String\n}\n"
HINT_DONE = SCHEMA.replace("name: String", 'name: String @rename_from("label")')
HINT_WRONG = SCHEMA.replace("name: String", 'label: String @rename_from("nmae")')


def plan(folder: Path, desired: str, *flags: str) -> Outcome:
    """Plan from the schema of the tests to another."""
    write(folder, "old.pg", SCHEMA)
    write(folder, "new.pg", desired)
    return omnigraph("schema", "plan", "--from", "old.pg", "--schema", "new.pg", *flags, cwd=folder)


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON of a plan."""
    loaded: dict[str, Any] = json.loads(outcome.stdout)
    return loaded


def test_an_added_optional_property_is_one_supported_step(tmp_path: Path) -> None:
    outcome = plan(tmp_path, ADDED)

    assert outcome == Outcome(
        0, "supported: yes\nsteps: 1\n  1. add node property Craft.orbit: String?; no row is written\n", ""
    )
    assert ((tmp_path / "old.pg").read_text(), (tmp_path / "new.pg").read_text()) == (SCHEMA, ADDED)
    assert {path.name for path in tmp_path.iterdir()} == {"old.pg", "new.pg"}


@pytest.mark.case("surfaces", 70)
def test_the_json_of_a_plan_is_its_uri_verdict_and_steps(tmp_path: Path) -> None:
    """The schema of a graph is given by the file that the graph was made from."""
    write(tmp_path, "old.pg", SCHEMA)
    assert omnigraph("init", "g.omni", "--schema", "old.pg", cwd=tmp_path).code == 0
    before = digest(tmp_path / "g.omni")

    outcome = plan(tmp_path, ADDED, "--json")

    assert digest(tmp_path / "g.omni") == before

    assert (outcome.code, outcome.stderr) == (0, "")
    assert document(outcome) == {
        "uri": "old.pg",
        "supported": True,
        "step_count": 1,
        "steps": [
            {
                "kind": "add_property",
                "type_kind": "node",
                "type_name": "Craft",
                "property_name": "orbit",
                "property_type": {"scalar": "String", "nullable": True, "list": False, "enum_values": None},
                "work": "schema",
            }
        ],
        "notes": [],
    }


@pytest.mark.case("surfaces", 71)
def test_another_property_type_is_planned_as_unsupported_with_its_code(tmp_path: Path) -> None:
    outcome = plan(tmp_path, RETYPED)
    steps = document(plan(tmp_path, RETYPED, "--json"))

    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("supported: no\n")
    assert "[OG-MF-106]" in outcome.stdout
    assert (steps["supported"], steps["step_count"]) == (False, 1)
    assert [(step["kind"], step["code"]) for step in steps["steps"]] == [("unsupported_change", "OG-MF-106")]


def test_a_required_property_is_unsupported_with_a_code_and_a_reason(tmp_path: Path) -> None:
    (step,) = document(plan(tmp_path, REQUIRED, "--json"))["steps"]

    assert step.keys() == {"kind", "entity", "reason", "code"}
    assert (step["entity"], step["code"]) == ("node:Craft.orbit", "OG-MF-103")


def test_a_step_without_a_code_has_no_empty_one(tmp_path: Path) -> None:
    desired = SCHEMA.replace("Craft -> Mission", "Craft -> Mission @card(0..1)")

    (step,) = document(plan(tmp_path, desired, "--json"))["steps"]

    assert step["kind"] == "unsupported_change"
    assert "code" not in step


@pytest.mark.parametrize(
    ("flags", "mode", "work"),
    [((), "soft", "no row is written"), (("--allow-data-loss",), "hard", "writes what stays")],
)
def test_every_drop_is_soft_unless_data_loss_is_allowed(
    flags: tuple[str, ...], mode: str, work: str, tmp_path: Path
) -> None:
    text = plan(tmp_path, DROPPED, *flags)
    steps = document(plan(tmp_path, DROPPED, "--json", *flags))["steps"]

    assert {step["kind"]: step["mode"] for step in steps} == {"drop_property": mode, "drop_type": mode}
    assert [step["type_kind"] for step in steps] == ["node", "node", "edge"]
    assert text.stdout.splitlines()[2:] == [
        f"  1. drop node property Craft.mass_kg ({mode}); {work} [OG-DS-104]",
        f"  2. drop node Mission ({mode}); no table is written [OG-DS-102]",
        f"  3. drop edge Flew ({mode}); no table is written [OG-DS-103]",
    ]


def test_equal_schemas_have_an_empty_plan(tmp_path: Path) -> None:
    declarations = SCHEMA.split("\n\n")
    outcome = plan(tmp_path, "// reordered\n" + "\n\n".join(reversed(declarations)))

    assert outcome == Outcome(0, "supported: yes\nsteps: 0\n", "")


def test_a_hint_that_has_done_its_work_is_noted_on_stderr_only(tmp_path: Path) -> None:
    text = plan(tmp_path, HINT_DONE)
    machine = plan(tmp_path, HINT_DONE, "--json")

    assert (text.code, text.stdout) == (0, "supported: yes\nsteps: 0\n")
    assert document(machine)["step_count"] == 0
    for outcome in (text, machine):
        assert outcome.stderr.startswith("info: ")
        assert "ignored" in outcome.stderr
        assert "--> new.pg:3:" in outcome.stderr


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_hint_that_leads_nowhere_is_a_catalog_error(flags: tuple[str, ...], tmp_path: Path) -> None:
    outcome = plan(tmp_path, HINT_WRONG, *flags)

    assert outcome.code == 1
    assert bool(outcome.stdout) == bool(flags)
    assert "catalog error: " in outcome.stderr
    assert "nmae" in outcome.stderr
    assert "--> new.pg:3:" in outcome.stderr
    assert "^" in outcome.stderr


def test_an_error_is_a_document_where_one_was_asked_for(tmp_path: Path) -> None:
    error = document(plan(tmp_path, HINT_WRONG, "--json"))

    assert error.keys() == {"error", "code"}
    assert error["code"] == "bad_request"
    assert error["error"].startswith("catalog error: ")


@pytest.mark.parametrize("broken", ["old.pg", "new.pg"])
def test_a_schema_that_does_not_parse_is_named(broken: str, tmp_path: Path) -> None:
    plan(tmp_path, ADDED)
    write(tmp_path, broken, "node Craft {")

    outcome = omnigraph("schema", "plan", "--from", "old.pg", "--schema", "new.pg", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert f"--> {broken}:1:" in outcome.stderr


def test_the_desired_schema_may_come_from_standard_input(tmp_path: Path) -> None:
    write(tmp_path, "old.pg", SCHEMA)

    outcome = omnigraph(
        "schema", "plan", "--from", "old.pg", "--schema", "-", "--json", cwd=tmp_path, stdin=ADDED
    )

    assert document(outcome)["step_count"] == 1


def test_two_dashes_are_a_mistake_in_usage(tmp_path: Path) -> None:
    outcome = omnigraph("schema", "plan", "--from", "-", "--schema", "-", cwd=tmp_path, stdin=SCHEMA)

    assert (outcome.code, outcome.stdout) == (2, "")


def test_a_missing_schema_is_named(tmp_path: Path) -> None:
    write(tmp_path, "old.pg", SCHEMA)

    outcome = omnigraph("schema", "plan", "--from", "old.pg", "--schema", "gone.pg", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "gone.pg" in outcome.stderr
