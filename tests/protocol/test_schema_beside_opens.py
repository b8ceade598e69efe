"""Changes of schema that are under way, have died or have failed, and what opens and loads do about them."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.schema_lock import LOCK_FILE
from omnigraph.core.errors import RecoveryRequired, ValidationError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.history.contract import SCHEMA_FILES, SCHEMA_SOURCE
from tests.support.books import assert_reopening_changes_nothing, books, fingerprint, recovery_files
from tests.support.protocol import BEFORE, EVOLVED, SCHEMA, go_on, stopped
from tests.support.seam import internals

WITH_EMAIL = b'{"type": "Person", "data": {"name": "eve", "email": "eve@acme"}}\n'
WITHOUT = b'{"type": "Person", "data": {"name": "eve", "age": 5}}\n'


def of_schema(root: Path) -> dict[str, str]:
    """Return the schema files."""
    return {name: (root / name).read_text() for name in SCHEMA_FILES}


def of_others(root: Path) -> dict[str, str]:
    """Return what every other file is: also the lock, the sidecar and the tables of a change."""
    return {name: text for name, text in fingerprint(root).items() if name not in SCHEMA_FILES}


@pytest.mark.case("engine", 320)
def test_an_open_removes_the_lock_of_a_dead_change_and_of_no_other(root: Path) -> None:
    with stopped(root, "schema_apply", "schema_apply.post_stage_pre_gate=") as script:
        held = (root / LOCK_FILE).read_text()
        living = fingerprint(root)

        omnigraph.open(root).close()

        assert (root / LOCK_FILE).read_text() == held
        assert fingerprint(root) == living
        script.kill()

    omnigraph.open(root, mode="ro").close()
    assert (root / LOCK_FILE).read_text() == held
    omnigraph.open(root).close()

    assert not (root / LOCK_FILE).exists()
    assert recovery_files(root) == ()
    assert_reopening_changes_nothing(root)
    with omnigraph.open(root) as graph:
        assert graph.schema() == SCHEMA
        assert graph.apply_schema(EVOLVED, index=False).applied


@pytest.mark.case("engine", 209)
def test_an_open_writes_the_files_of_a_change_that_is_under_way_and_nothing_else_of_it(root: Path) -> None:
    with stopped(root, "schema_apply", "schema_apply.after_manifest_commit=") as script:
        assert (root / SCHEMA_SOURCE).read_text() == SCHEMA
        others = of_others(root)
        assert {"__recovery", "__branches"} <= {name.partition("/")[0] for name in others}

        with omnigraph.open(root, mode="ro") as reader:
            assert reader.schema() == EVOLVED
        assert (root / SCHEMA_SOURCE).read_text() == SCHEMA
        with omnigraph.open(root) as graph:
            assert graph.schema() == EVOLVED

        written = of_schema(root)
        assert written[SCHEMA_SOURCE] == EVOLVED
        assert of_others(root) == others
        go_on(script)
    assert of_schema(root) == written
    assert (books(root).contents, books(root).recoveries, recovery_files(root)) == (BEFORE, (), ())
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 210)
@pytest.mark.parametrize("is_there", [True, False], ids=["forward", "back"])
def test_a_load_behind_a_failed_change_goes_by_the_schema_that_recovery_left(
    is_there: bool, root: Path
) -> None:
    point = "before_manifest_commit" if is_there else "post_sidecar_pre_commit"
    with omnigraph.open(root) as graph:
        with (
            failpoint(f"schema_apply.{point}", "raise"),
            pytest.raises((RecoveryRequired, InjectedFault)),
        ):
            graph.apply_schema(EVOLVED, index=False)
        assert graph.schema() == SCHEMA

        if is_there:
            graph.load(WITH_EMAIL, "append")
        else:
            with pytest.raises(ValidationError, match="email"):
                graph.load(WITH_EMAIL, "append")
            graph.load(WITHOUT, "append")

        rows = {row["name"]: row for row in graph.table("node:Person").to_pylist()}
        assert rows["eve"].get("email") == ("eve@acme" if is_there else None)
        assert set(rows) == {"ann", "bob", "cid", "eve"}
        assert graph.schema() == (EVOLVED if is_there else SCHEMA)
        assert ("email" in graph.catalog.nodes["Person"].properties) == is_there
        assert internals(graph).parts.adapter.read_text(SCHEMA_SOURCE) == graph.schema()
    assert recovery_files(root) == ()
    assert_reopening_changes_nothing(root)
