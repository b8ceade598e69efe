"""The example project in examples/seedbank keeps what its pages promise."""

import json
import os
import re
import runpy
import subprocess
from collections import Counter
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.lint import LintReport, lint
from omnigraph.catalog.model import Catalog
from omnigraph.core.span import Source
from tests.support.commands import PROGRAM, omnigraph
from tests.support.library import plan, plan_steps
from tests.support.pages import REPOSITORY
from tests.support.seed_check import violations

BANK = REPOSITORY / "examples" / "seedbank"
SEED = BANK / "seed" / "seedbank.jsonl"
SCHEMAS = sorted(BANK.glob("*.pg"))
QUERIES = sorted((BANK / "queries").glob("*.gq"))


def text(name: str) -> str:
    return (BANK / name).read_text(encoding="utf-8")


@cache
def catalog() -> Catalog:
    return compile_schema(Source(text("schema.pg")))


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SEED.read_text(encoding="utf-8").splitlines()]


def report(path: Path) -> LintReport:
    source = Source(path.read_text(encoding="utf-8"))
    return lint(catalog(), source, query_path=path.name, schema_source={})


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_schema_makes_a_catalog(path: Path) -> None:
    built = compile_schema(Source(path.read_text(encoding="utf-8")))

    assert len(built.nodes) == 8
    assert len(built.interfaces) == 2


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.name)
def test_the_queries_have_neither_errors_nor_warnings(path: Path) -> None:
    checked = report(path)

    assert [(result.name, str(result.error)) for result in checked.results if result.error] == []
    assert [result.warnings for result in checked.results if result.warnings] == []
    assert [finding.message for finding in checked.findings] == []


def test_there_are_many_queries_under_different_names_reads_and_mutations() -> None:
    results = [result for path in QUERIES for result in report(path).results]

    assert len(results) >= 20
    assert len({result.name for result in results}) == len(results)
    assert {result.kind for result in results} == {"read", "mutation"}


def test_the_next_schema_can_be_applied_with_the_steps_it_promises() -> None:
    steps = plan_steps(text("schema.pg"), text("schema-next.pg"))

    assert plan(text("schema.pg"), text("schema-next.pg")).is_supported
    assert Counter(step["kind"] for step in steps) == {
        "add_property": 1,
        "extend_enum": 1,
        "update_property_metadata": 1,
        "drop_property": 1,
        "add_constraint": 1,
        "add_type": 2,
        "rename_property": 1,
        "update_type_metadata": 1,
        "rename_type": 1,
        "drop_type": 2,
    }


def test_the_unsupported_schema_is_refused_for_the_reasons_it_gives() -> None:
    steps = plan_steps(text("schema.pg"), text("schema-unsupported.pg"))

    assert [(step["kind"], step["entity"], step.get("code")) for step in steps] == [
        ("unsupported_change", "node:Accession.custodian", "OG-MF-103"),
        ("unsupported_change", "node:Accession.seed_count", "OG-MF-106"),
        ("unsupported_change", "edge:CollectedAt", None),
    ]


def test_the_seed_is_written_with_the_same_bytes_every_time(tmp_path: Path) -> None:
    script = tmp_path / "make_seed.py"
    script.write_bytes((BANK / "make_seed.py").read_bytes())
    (tmp_path / "seed").mkdir()

    runpy.run_path(str(script), run_name="__main__")

    assert (tmp_path / "seed" / SEED.name).read_bytes() == SEED.read_bytes()


def test_the_seed_has_as_many_records_as_its_page_says() -> None:
    counts = Counter("edge" if "edge" in record else "node" for record in records())

    said = re.search(r"holds (\d+) nodes and (\d+) edges", text("README.md"))
    assert said is not None
    assert (counts["node"], counts["edge"]) == (int(said[1]), int(said[2]))
    assert counts.total() >= 300


def test_every_type_occurs_in_the_seed() -> None:
    found = {record.get("type") or record["edge"] for record in records()}

    assert found == catalog().nodes.keys() | catalog().edges.keys()


def test_every_record_of_the_seed_is_valid() -> None:
    assert violations(catalog(), records()) == []


def node(type_name: str, number: int = 0) -> int:
    return [index for index, record in enumerate(records()) if record.get("type") == type_name][number]


def edge(type_name: str) -> int:
    return next(index for index, record in enumerate(records()) if record.get("edge") == type_name)


@pytest.mark.parametrize(
    ("index", "change", "complaint"),
    [
        (node("Taxon"), {"type": "Tree"}, "no such record"),
        (node("Site"), {"data.height": 3}, "Site has no height"),
        (node("Site"), {"data.country": None}, "Site.country is missing"),
        (node("Site"), {"data.country": "germany"}, "Site.country is 'germany'"),
        (node("Site"), {"data.latitude": 91}, "Site.latitude is 91"),
        (node("Site"), {"data.habitat": "moon"}, "Site.habitat is 'moon'"),
        (node("Site"), {"data.registered_on": "2024-13-01"}, "Site.registered_on"),
        (node("Accession"), {"data.barcode": -1}, "Accession.barcode is -1"),
        (node("Accession"), {"data.tags": [1]}, "Accession.tags"),
        (node("Site", 1), {"data.code": "ST-001"}, "Site ST-001 twice"),
        (node("Person", 1), {"data.email": records()[node("Person")]["data"]["email"]}, "are equal"),
        (edge("Tested"), {"to": "SB-1999-0001"}, "which does not exist"),
        (edge("Tested"), {"edge": "RunBy"}, "has 0 of Tested"),
    ],
)
def test_the_check_of_the_seed_would_notice(index: int, change: dict[str, Any], complaint: str) -> None:
    changed = deepcopy(records())
    for path, value in change.items():
        *outer, last = path.split(".")
        target = changed[index][outer[0]] if outer else changed[index]
        target[last] = value

    assert any(complaint in line for line in violations(catalog(), changed))


@pytest.mark.slow
def test_the_tour_runs_to_its_end() -> None:
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"

    tour = subprocess.run(
        ["bash", "examples/demo.sh"],
        cwd=REPOSITORY,
        env=os.environ | {"PATH": path},
        capture_output=True,
        check=False,
        text=True,
    )

    assert (tour.returncode, tour.stderr) == (0, "")
    assert tour.stdout.splitlines()[-1].startswith("==> Done")
    assert tour.stdout.count("(exit code ") >= 20


def test_the_tour_stops_at_the_first_step_that_behaves_otherwise(tmp_path: Path) -> None:
    impostor = tmp_path / "omnigraph"
    impostor.write_text("#!/bin/sh\nexit 3\n")
    impostor.chmod(0o755)

    tour = subprocess.run(
        ["bash", "examples/demo.sh"],
        cwd=REPOSITORY,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        check=False,
        text=True,
    )

    assert tour.returncode == 1
    assert "exit code 3 where 0 was expected" in tour.stderr


def test_the_command_of_the_page_works_as_written() -> None:
    command = re.search(r"^    omnigraph (lint .+)$", text("README.md"), re.MULTILINE)
    assert command is not None

    outcome = omnigraph(*command[1].split(), cwd=REPOSITORY)

    assert outcome.code == 0
    assert outcome.stdout.endswith(": 0 errors, 0 warnings\n")
