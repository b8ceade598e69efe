"""What became of a dead writer's tables: the tables of 7.4 and 7.5."""

from dataclasses import replace

import pytest

from omnigraph.commit.recovery.classify import (
    Classification,
    Decision,
    FoundTable,
    HealingMode,
    classify,
    decide,
    is_layout_only,
    mode_of,
)
from omnigraph.commit.sidecar import SidecarTable, WriterKind
from omnigraph.history.identity import TableIdentity

PIN = 7
STRICT = (WriterKind.MUTATION, WriterKind.LOAD, WriterKind.REPAIR)
LAYOUT = (WriterKind.ENSURE_INDICES, WriterKind.OPTIMIZE)
LOOSE = (WriterKind.SCHEMA_APPLY, *LAYOUT)
PAST = Classification.ROLLED_PAST_EXPECTED
UNMOVED = Classification.NO_MOVEMENT
AT_P1 = Classification.UNEXPECTED_AT_P1
MULTISTEP = Classification.UNEXPECTED_MULTISTEP
INCOMPLETE = Classification.INCOMPLETE_PHASE_B
VIOLATION = Classification.INVARIANT_VIOLATION


def table(**changes: object) -> SidecarTable:
    identity = TableIdentity(3, 1)
    made = SidecarTable(
        "node:Person", 3, 1, identity.location("node:Person"), None, PIN, PIN + 1, transaction_uuid="ours"
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def found(
    head: int, *, pin: int = PIN, uuid: bool = True, ours: tuple[bool, ...] | None = None
) -> FoundTable:
    return FoundTable(head, pin, uuid, (True,) * (head - pin) if ours is None else ours)


def judge(kind: WriterKind, seen: FoundTable, of: SidecarTable | None = None) -> Classification:
    return classify(of or table(), seen, kind, mode_of(kind))


# The table of 7.5


@pytest.mark.case("engine", 150)
@pytest.mark.parametrize("kind", WriterKind)
def test_a_table_behind_its_pin_breaks_the_invariant_and_one_at_it_has_not_moved(kind: WriterKind) -> None:
    assert judge(kind, found(PIN - 1)) is VIOLATION
    assert judge(kind, found(PIN)) is UNMOVED


@pytest.mark.case("engine", 150)
@pytest.mark.parametrize("kind", STRICT)
def test_a_strict_table_went_past_only_by_its_own_one_commit(kind: WriterKind) -> None:
    assert judge(kind, found(PIN + 1)) is PAST
    assert judge(kind, found(PIN + 1), table(expected_version=PIN - 1)) is AT_P1
    assert judge(kind, found(PIN + 1), table(post_commit_pin=PIN + 2)) is AT_P1
    assert judge(kind, found(PIN + 2)) is MULTISTEP


@pytest.mark.case("engine", 150)
@pytest.mark.parametrize("kind", LOOSE)
def test_a_loose_table_went_past_by_any_number_of_its_own_commits(kind: WriterKind) -> None:
    assert judge(kind, found(PIN + 1)) is PAST
    assert judge(kind, found(PIN + 3)) is PAST
    assert judge(kind, found(PIN + 1, ours=(False,))) is AT_P1
    assert judge(kind, found(PIN + 3, ours=(True, False, True))) is MULTISTEP
    stale = table(expected_version=PIN - 1)
    assert judge(kind, found(PIN + 1), stale) is (PAST if kind in LAYOUT else AT_P1)
    assert judge(kind, found(PIN + 2), stale) is (PAST if kind in LAYOUT else MULTISTEP)


@pytest.mark.case("engine", 150)
@pytest.mark.case("engine", 155)
def test_a_merge_went_past_to_exactly_what_it_confirmed() -> None:
    kind = WriterKind.BRANCH_MERGE
    assert judge(kind, found(PIN + 2)) is INCOMPLETE
    assert judge(kind, found(PIN + 2), table(confirmed_version=PIN + 2)) is PAST
    assert judge(kind, found(PIN + 2), table(confirmed_version=PIN + 3)) is MULTISTEP
    stale = table(confirmed_version=PIN + 2, expected_version=PIN - 1)
    assert judge(kind, found(PIN + 2), stale) is MULTISTEP


@pytest.mark.case("engine", 151)
def test_every_kind_has_a_mode() -> None:
    modes = {kind: mode_of(kind) for kind in WriterKind}

    assert modes == {
        **dict.fromkeys(STRICT, HealingMode.STRICT),
        **dict.fromkeys(LOOSE, HealingMode.LOOSE),
        WriterKind.BRANCH_MERGE: HealingMode.CONFIRMED,
    }
    assert {kind for kind in WriterKind if is_layout_only(kind)} == set(LAYOUT)
    with pytest.raises(AssertionError):  # what a kind without a mode meets
        mode_of("Cleanup")  # type: ignore[arg-type]


@pytest.mark.case("engine", 153)
@pytest.mark.parametrize("kind", STRICT)
def test_numbers_alone_prove_nothing(kind: WriterKind) -> None:
    assert judge(kind, found(PIN + 1, uuid=False)) is AT_P1


@pytest.mark.case("engine", 153)
@pytest.mark.parametrize("kind", LOOSE)
def test_a_foreign_commit_between_pin_and_head_is_never_published(kind: WriterKind) -> None:
    assert judge(kind, found(PIN + 2, ours=(False, True))) is MULTISTEP
    assert judge(kind, found(PIN + 1, ours=())) is AT_P1
    only_layout = found(PIN + 2, ours=(True, True))
    assert judge(kind, only_layout) is PAST
    assert judge(kind, only_layout, table(expected_version=PIN - 2)) is (
        PAST if kind in LAYOUT else MULTISTEP
    )


# The decision of 7.4


@pytest.mark.case("engine", 152)
@pytest.mark.parametrize("kind", WriterKind)
def test_the_decision(kind: WriterKind) -> None:
    unexpected = (AT_P1, MULTISTEP, INCOMPLETE)
    for other in Classification:
        assert decide(kind, (other, VIOLATION)) is Decision.ABORT
    assert decide(kind, (PAST, PAST)) is Decision.ROLL_FORWARD
    assert decide(kind, (UNMOVED, UNMOVED)) is Decision.EFFECT_FREE
    partly = Decision.ROLL_FORWARD if kind in LAYOUT else Decision.ROLL_BACK
    assert decide(kind, (PAST, UNMOVED)) is partly
    for other in unexpected:
        assert decide(kind, (PAST, other)) is Decision.ROLL_BACK
        assert decide(kind, (UNMOVED, other)) is Decision.ROLL_BACK
        assert decide(kind, (PAST, UNMOVED, other)) is Decision.ROLL_BACK
