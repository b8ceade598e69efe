"""The reader of sidecars: what the file says, or a typed error that names it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.build import ir_text
from omnigraph.catalog.identity import accept_first
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.schema_change import EndedTable, RenamedTable, SchemaChange
from omnigraph.commit.sidecar import (
    FORMAT,
    FORMAT_OF_SCHEMAS,
    Outcome,
    PointerUpdate,
    ReadTable,
    RecoveryPlan,
    Sidecar,
    SidecarTable,
    WriterKind,
)
from omnigraph.commit.sidecar_reader import read_sidecar
from omnigraph.core.errors import SidecarCorrupt, SidecarTooNew
from omnigraph.history.contract import compiled
from omnigraph.history.identity import MAIN_BRANCH, BranchIdentity, TableIdentity

OPERATION = "01J00000000000000000000000"
NAME = f"__recovery/{OPERATION}.json"
TABLE = SidecarTable(
    "node:Person", 3, 1, TableIdentity(3, 1).location("node:Person"), None, 7, 8, transaction_uuid="ours"
)
SIDECAR = Sidecar(
    operation_id=OPERATION,
    writer_kind=WriterKind.MUTATION,
    started_at=5,
    branch=MAIN_BRANCH,
    actor_id=None,
    graph_commit_id="01J00000000000000000000001",
    recovery_commit_id="01J00000000000000000000002",
    tables=(TABLE,),
    host="here",
    boot_id="boot",
    pid=12,
    read_set=(ReadTable("node:Company", 4, 1, 2),),
)
PLANNED = replace(
    SIDECAR,
    branch=BranchIdentity("review/june", "b-01"),
    actor_id="mira",
    writer_epoch=3,
    recovery_plan=RecoveryPlan(RecoveryKind.ROLLED_BACK, (Outcome("node:Person", 8, 7),)),
)
DOCUMENT: dict[str, Any] = json.loads(PLANNED.to_text())


POINTER: dict[str, object] = {
    "table_key": "node:Company",
    "stable_table_id": 4,
    "table_incarnation_id": 1,
    "version": 9,
    "table_branch": None,
    "row_count": 2,
}


def written(**changes: object) -> str:
    return json.dumps(DOCUMENT | changes)


def entry(**changes: object) -> dict[str, object]:
    return {**DOCUMENT["tables"][0], **changes}


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every value inside a document."""
    yield path
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in items:
        yield from places(inner, (*path, key))


PLACES = [path for path in places(DOCUMENT) if path]
LISTS = {
    "tables",
    "read_set",
    "outcomes",
    "pointer_updates",
    "additional_registrations",
    "renames",
    "tombstones",
}
MEMBERS = [path for path in PLACES if isinstance(path[-1], str)]


def changed(path: tuple[str | int, ...], value: object, *, is_removed: bool = False) -> dict[str, Any]:
    """Return the document with another value at a place, or with nothing there."""
    document: dict[str, Any] = json.loads(json.dumps(DOCUMENT))
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    if is_removed:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return document


@pytest.mark.parametrize("sidecar", [SIDECAR, PLANNED], ids=["fresh", "planned"])
def test_a_sidecar_is_read_as_it_was_written(sidecar: Sidecar) -> None:
    assert read_sidecar(NAME, sidecar.to_text()) == sidecar


@pytest.mark.case("engine", 156)
@pytest.mark.parametrize("path", MEMBERS, ids=str)
def test_a_missing_member_is_named(path: tuple[str | int, ...]) -> None:
    with pytest.raises(SidecarCorrupt, match=str(path[-1])) as caught:
        read_sidecar(NAME, json.dumps(changed(path, None, is_removed=True)))

    assert caught.value.uri == NAME


@pytest.mark.case("engine", 156)
@pytest.mark.parametrize(
    "path",
    [(), ("tables", 0), ("read_set", 0), ("recovery_plan",), ("recovery_plan", "outcomes", 0)],
    ids=str,
)
def test_an_unknown_member_is_named(path: tuple[str | int, ...]) -> None:
    with pytest.raises(SidecarCorrupt, match="surprise"):
        read_sidecar(NAME, json.dumps(changed((*path, "surprise"), 1)))


@pytest.mark.case("engine", 156)
@pytest.mark.parametrize("wrong", [True, 1.0, -1, 2**64, "", [], {}, "\ud800"], ids=repr)
@pytest.mark.parametrize("path", MEMBERS, ids=str)
def test_no_member_takes_a_value_of_another_type(path: tuple[str | int, ...], wrong: object) -> None:
    if wrong == [] and path[-1] in LISTS:
        return

    with pytest.raises(SidecarCorrupt):
        read_sidecar(NAME, json.dumps(changed(path, wrong)))


@pytest.mark.case("engine", 156)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not an object"),
        ("null", "not an object"),
        ("[" * 100_000, "not JSON"),
        ("9" * 5_000, "not JSON"),
        ("{}", "schema_version"),
        (SIDECAR.to_text().replace("{", '{"pid": 1,', 1), "twice"),
        (written(writer_kind="Cleanup"), "writer_kind is not one of Mutation, Load"),
        (written(operation_id="01J00000000000000000000009"), "belongs to operation"),
        (written(graph_commit_id="not a ulid"), "graph_commit_id is not a ULID"),
        (written(tables=[entry(), entry()]), "listed twice"),
        (written(tables=[entry(stable_table_id=4, table_path="nodes/4-1")], read_set=[]), "not the path"),
        (written(tables=[entry(stable_table_id=0)]), "stable_table_id is zero"),
        (written(tables=[entry(table_key="Person")]), "not the key of a table"),
        (written(tables=[entry(confirmed_version=8)]), "only a merge confirms"),
        (written(read_set=[{**DOCUMENT["read_set"][0], "stable_table_id": 3}]), "listed twice"),
        (
            written(recovery_plan={"kind": "VersionQuarantined", "outcomes": []}),
            "not one of OrphanedBranchDiscarded, Rolled",
        ),
        (written(merge_source_commit_id="01J00000000000000000000003"), "only a merge repoints"),
        (written(pointer_updates=[POINTER]), "only a merge repoints"),
        (written(pointer_updates=[POINTER, POINTER], writer_kind="BranchMerge"), "listed twice"),
        (
            written(pointer_updates=[{**POINTER, "stable_table_id": 3}], writer_kind="BranchMerge"),
            "listed twice",
        ),
        (written(pointer_updates=[{}], writer_kind="BranchMerge"), "missing or unknown members"),
        (written(renames=[{}], writer_kind="SchemaApply"), "sets renames"),
        (written(branch="main", branch_ref=None), "null for main"),
        (written(branch="june", branch_ref=None), "both be given"),
        (written(branch=None, branch_ref="june-01ARZ3NDEKTSV4RRFFQ69G5FAV"), "both be null"),
    ],
)
def test_what_is_no_sidecar_is_corrupt_and_says_why(text: str, reason: str) -> None:
    with pytest.raises(SidecarCorrupt, match=reason) as caught:
        read_sidecar(NAME, text)

    assert caught.value.uri == NAME


@pytest.mark.case("engine", 155)
def test_a_merge_carries_its_confirmation_its_source_and_what_it_repoints() -> None:
    merge = replace(
        SIDECAR,
        writer_kind=WriterKind.BRANCH_MERGE,
        pointer_updates=(PointerUpdate("node:Company", 4, 1, 9, None, 2),),
        merge_source_commit_id="01J00000000000000000000003",
    ).with_confirmed({TABLE.identity: 9})

    assert merge.tables == (replace(TABLE, confirmed_version=9),)
    assert read_sidecar(NAME, merge.to_text()) == merge


@pytest.mark.case("engine", 156)
@pytest.mark.parametrize("wrong", [True, 1.0, -1, 2**64, "", [], {}, "\ud800"], ids=repr)
@pytest.mark.parametrize("member", list(POINTER))
def test_no_member_of_a_pointer_takes_a_value_of_another_type(member: str, wrong: object) -> None:
    text = written(pointer_updates=[{**POINTER, member: wrong}], writer_kind="BranchMerge")

    with pytest.raises(SidecarCorrupt):
        read_sidecar(NAME, text)


@pytest.mark.case("engine", 156)
@pytest.mark.case("engine", 193)
def test_a_sidecar_of_a_newer_build_is_too_new() -> None:
    with pytest.raises(SidecarTooNew) as caught:
        read_sidecar(NAME, written(schema_version=99, surprise=1))

    assert (caught.value.uri, caught.value.found) == (NAME, 99)


@pytest.mark.case("engine", 401)
@pytest.mark.parametrize("version", [0, 1])
def test_a_format_that_no_build_of_this_stamp_wrote_is_corrupt(version: int) -> None:
    with pytest.raises(SidecarCorrupt, match=f"format {version}, but the oldest supported one is {FORMAT}"):
        read_sidecar(NAME, written(schema_version=version))


SOURCE = "node A { k: String @key }"
CHANGE = SchemaChange(
    ir_text(accept_first(compiled(SOURCE))),
    SOURCE,
    7,
    (RenamedTable(3, 4, "node:A", "node:B"),),
    (EndedTable(5, 6, "edge:E", 2),),
)
MADE = replace(SIDECAR.tables[0], expected_version=0, post_commit_pin=1)


@pytest.mark.case("engine", 556)
def test_a_change_of_schema_is_read_as_it_was_written() -> None:
    changing = replace(
        SIDECAR, writer_kind=WriterKind.SCHEMA_APPLY, schema_change=CHANGE, tables=(MADE, *SIDECAR.tables[1:])
    )
    text = json.loads(changing.to_text())

    assert text["schema_version"] == FORMAT_OF_SCHEMAS
    assert read_sidecar(NAME, changing.to_text()) == changing
    assert "schema_change" not in json.loads(SIDECAR.to_text())
    for member in text["schema_change"]:
        short = {**text, "schema_change": {k: v for k, v in text["schema_change"].items() if k != member}}
        with pytest.raises(SidecarCorrupt, match=member):
            read_sidecar(NAME, json.dumps(short))


@pytest.mark.case("engine", 556)
def test_only_a_change_of_schema_makes_tables() -> None:
    with pytest.raises(SidecarCorrupt, match="only a write that changes the schema creates tables"):
        read_sidecar(NAME, replace(SIDECAR, tables=(MADE, *SIDECAR.tables[1:])).to_text())


OF_A_STORE = replace(SIDECAR, writer_id="01J00000000000000000000003", owner="01J00000000000000000000004")


@pytest.mark.case("engine", 463)
@pytest.mark.parametrize(
    "sidecar", [OF_A_STORE, OF_A_STORE.owned_by(None), SIDECAR.owned_by(OF_A_STORE.owner)], ids=repr
)
def test_a_sidecar_of_an_object_store_names_its_writer_and_its_owner(sidecar: Sidecar) -> None:
    text = sidecar.to_text()

    assert json.loads(text)["schema_version"] == 3
    assert read_sidecar(NAME, text) == sidecar


@pytest.mark.case("engine", 463)
@pytest.mark.parametrize("member", ["writer_id", "owner"])
def test_the_members_of_an_object_store_belong_to_its_version(member: str) -> None:
    document = json.loads(OF_A_STORE.to_text())
    without = {key: value for key, value in document.items() if key != member}
    texts = [without, document | {member: "x"}, document | {member: 7}, document | {"schema_version": 2}]

    for text in texts:
        with pytest.raises(SidecarCorrupt):
            read_sidecar(NAME, json.dumps(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 9) | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
CUTS = st.integers(0, len(PLANNED.to_text()))


def read_or_refuse(text: str) -> None:
    """Read a text: the answer is a sidecar that can be written and read back, or a typed error."""
    try:
        sidecar = read_sidecar(NAME, text)
    except (SidecarCorrupt, SidecarTooNew):
        return
    assert read_sidecar(NAME, sidecar.to_text().encode().decode()) == sidecar
    assert json.loads(sidecar.to_text()) == json.loads(text)


@given(path=st.sampled_from(PLACES), value=JSON, is_removed=st.booleans())
def test_a_changed_document_is_read_for_what_it_says_or_refused(
    path: tuple[str | int, ...], value: object, is_removed: bool
) -> None:
    read_or_refuse(json.dumps(changed(path, value, is_removed=is_removed)))


@given(at=CUTS, until=CUTS, replacement=st.text(max_size=6))
def test_a_damaged_text_is_read_for_what_it_says_or_refused(at: int, until: int, replacement: str) -> None:
    text = PLANNED.to_text()

    read_or_refuse(text[:at] + replacement + text[max(at, until) :])
