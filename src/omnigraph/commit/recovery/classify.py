"""What became of a dead writer's tables: pure functions over what was found.

Nothing here reads or writes; these functions are the tables in 7.5 and 7.4 of the engine specification.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from omnigraph.commit.sidecar import SidecarTable, WriterKind


class HealingMode(StrEnum):
    """How strictly the movement of a table is judged."""

    STRICT = "strict"
    LOOSE = "loose"
    CONFIRMED = "confirmed"


class Classification(StrEnum):
    """What one table did since the sidecar was written."""

    INVARIANT_VIOLATION = "InvariantViolation"
    NO_MOVEMENT = "NoMovement"
    ROLLED_PAST_EXPECTED = "RolledPastExpected"
    UNEXPECTED_AT_P1 = "UnexpectedAtP1"
    UNEXPECTED_MULTISTEP = "UnexpectedMultistep"
    INCOMPLETE_PHASE_B = "IncompletePhaseB"


class Decision(StrEnum):
    """What recovery does with a sidecar."""

    ABORT = "Abort"
    ROLL_FORWARD = "RollForward"
    EFFECT_FREE = "EffectFree"
    ROLL_BACK = "RollBack"


@dataclass(frozen=True, slots=True)
class FoundTable:
    """The current state of a table.

    `is_ours` holds one value per version between pin and HEAD: whether its transaction is this operation's,
    or an unmarked layout commit of the library.
    """

    head: int
    pin: int
    head_has_our_uuid: bool
    is_ours: tuple[bool, ...] = ()


def mode_of(kind: WriterKind) -> HealingMode:
    """Return how the tables of a writer are judged; a new kind must be added here."""
    match kind:
        case WriterKind.MUTATION | WriterKind.LOAD | WriterKind.REPAIR:
            return HealingMode.STRICT
        case WriterKind.SCHEMA_APPLY | WriterKind.ENSURE_INDICES | WriterKind.OPTIMIZE:
            return HealingMode.LOOSE
        case WriterKind.BRANCH_MERGE:
            return HealingMode.CONFIRMED
        case _:
            assert_never(kind)


def is_layout_only(kind: WriterKind) -> bool:
    """Return whether a writer's commits carry no rows: what moved may be published without the rest."""
    return kind in {WriterKind.ENSURE_INDICES, WriterKind.OPTIMIZE}


def classify(table: SidecarTable, found: FoundTable, kind: WriterKind, mode: HealingMode) -> Classification:
    """Return what a table did, by the first rule that applies."""
    head, pin = found.head, found.pin
    if head < pin:
        return Classification.INVARIANT_VIOLATION
    if head == pin:
        return Classification.NO_MOVEMENT
    unexpected = Classification.UNEXPECTED_AT_P1 if head == pin + 1 else Classification.UNEXPECTED_MULTISTEP
    match mode:
        case HealingMode.STRICT:
            is_ours = head == pin + 1 == table.post_commit_pin and table.expected_version == pin
            return Classification.ROLLED_PAST_EXPECTED if is_ours and found.head_has_our_uuid else unexpected
        case HealingMode.LOOSE:
            is_current = table.expected_version == pin or is_layout_only(kind)
            is_past = is_current and bool(found.is_ours) and all(found.is_ours)
            return Classification.ROLLED_PAST_EXPECTED if is_past else unexpected
        case HealingMode.CONFIRMED:
            if table.confirmed_version is None:
                return Classification.INCOMPLETE_PHASE_B
            is_past = head == table.confirmed_version and table.expected_version == pin
            return Classification.ROLLED_PAST_EXPECTED if is_past else Classification.UNEXPECTED_MULTISTEP
        case _:
            assert_never(mode)


def decide(kind: WriterKind, classifications: tuple[Classification, ...]) -> Decision:
    """Return what to do with a sidecar; rows go forward together or not at all."""
    found = set(classifications)
    if Classification.INVARIANT_VIOLATION in found:
        return Decision.ABORT
    if found and found == {Classification.ROLLED_PAST_EXPECTED}:
        return Decision.ROLL_FORWARD
    allowed = {Classification.ROLLED_PAST_EXPECTED, Classification.NO_MOVEMENT}
    if is_layout_only(kind) and Classification.ROLLED_PAST_EXPECTED in found and found <= allowed:
        return Decision.ROLL_FORWARD
    if found <= {Classification.NO_MOVEMENT}:
        return Decision.EFFECT_FREE
    return Decision.ROLL_BACK
