"""The order of violations and the errors they become."""

import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.core.errors import KeyConflict, ValidationError
from omnigraph.validate.violations import (
    COUNTED_MAX,
    NOWHERE,
    REFUSED_MAX,
    Consequence,
    KeyConflictViolation,
    Violation,
    ViolationKind,
    ViolationLog,
)


def violation(
    kind: ViolationKind = ViolationKind.TYPE,
    *,
    file: int = 0,
    line: int = 1,
    row_id: str | None = "a",
    constraint: int = 0,
    table_key: str = "node:Book",
    message: str = "wrong",
    file_name: str | None = None,
) -> Violation:
    return Violation(kind, message, table_key, row_id, file, line, file_name, constraint)


def test_the_order_is_file_line_id_kind_constraint_then_what_has_no_row_by_table_and_id() -> None:
    ordered = [
        violation(ViolationKind.CARDINALITY, file=0, line=1, row_id="a"),
        violation(ViolationKind.REQUIRED, file=0, line=2, row_id="a"),
        violation(ViolationKind.TYPE, file=0, line=2, row_id="a", constraint=1),
        violation(ViolationKind.TYPE, file=0, line=2, row_id="a", constraint=2),
        violation(ViolationKind.RECORD, file=0, line=2, row_id="b"),
        violation(ViolationKind.RECORD, file=0, line=10, row_id=None),
        violation(ViolationKind.RECORD, file=1, line=1, row_id=None),
        violation(ViolationKind.CARDINALITY, file=NOWHERE, line=NOWHERE, table_key="edge:A", row_id="z"),
        violation(ViolationKind.ENDPOINT, file=NOWHERE, line=NOWHERE, table_key="edge:B", row_id="a"),
        violation(ViolationKind.ENDPOINT, file=NOWHERE, line=NOWHERE, table_key="edge:B", row_id="b"),
    ]

    for shuffled in itertools.islice(itertools.permutations(ordered), 0, 3_628_800, 90_001):
        log = ViolationLog()
        log.extend(shuffled)

        assert list(log.first_violations()) == ordered


def test_the_kinds_are_in_the_order_of_the_specification() -> None:
    ordered = ["record", "required", "type", "enum", "range", "check", "unique", "endpoint", "cardinality"]

    log = ViolationLog()
    log.extend(violation(kind) for kind in sorted(ViolationKind))

    assert [found.kind for found in log.first_violations()] == ordered


@given(lines=st.lists(st.integers(1, 50), max_size=60), limit=st.integers(1, 10))
def test_a_log_keeps_the_first_and_counts_all(lines: list[int], limit: int) -> None:
    log = ViolationLog(limit)

    for line in lines:
        log.add(violation(line=line))

    assert [found.line for found in log.first_violations()] == sorted(lines)[:limit]
    assert log.total == len(lines)


@given(lines=st.lists(st.integers(1, 30), max_size=40), limit=st.integers(1, 5), line=st.integers(1, 31))
def test_a_log_has_room_for_everything_that_could_be_among_the_first(
    lines: list[int], limit: int, line: int
) -> None:
    log = ViolationLog(limit)
    for earlier in lines:
        log.add(violation(line=earlier))

    is_first = len(lines) < limit or line < sorted(lines)[limit - 1]

    assert log.has_room(file=0, line=line) or not is_first


def test_a_log_full_of_consequences_has_room_for_a_cause_behind_them() -> None:
    log = ViolationLog(limit=2)
    followed = [
        Consequence(
            ViolationKind.ENDPOINT, "not found", "edge:Knows", None, 0, line, cause=("node:Person", "bo")
        )
        for line in (1, 2)
    ]
    log.extend_consequences(followed, total=2)
    assert log.first_violations() == tuple(followed)

    assert log.has_room(file=0, line=9)
    log.add(violation(line=9))
    assert log.first_violations()[0].line == 9


def test_of_many_refused_nodes_the_least_are_known() -> None:
    ids = [f"p{number:05d}" for number in range(REFUSED_MAX + 5)]
    log = ViolationLog()

    log.refuse("node:Person", reversed(ids))

    assert log.refused == {"node:Person": set(ids[:REFUSED_MAX])}


def test_logs_of_parts_of_an_input_make_one() -> None:
    left, right = ViolationLog(limit=2), ViolationLog(limit=2)
    left.extend(violation(line=line) for line in (5, 1, 9))
    right.open_file(0, "a.ndjson")
    right.extend(violation(line=line) for line in (2, 7))
    right.refuse("node:Book", ["refused"])
    right.extend_consequences([], total=3)

    left.merge(right)

    assert [found.line for found in left.first_violations()] == [1, 2]
    assert (left.total, left.consequences) == (8, 3)
    assert left.refused == {"node:Book": {"refused"}}
    assert left.file_name(0) == "a.ndjson"


@pytest.mark.parametrize(("limit", "enough"), [(1, COUNTED_MAX), (COUNTED_MAX + 5, COUNTED_MAX + 5)])
def test_a_log_has_enough_when_it_counts_ten_thousand_or_as_many_as_it_keeps(limit: int, enough: int) -> None:
    log = ViolationLog(limit)
    log.extend([violation()], more=enough - 2)

    assert not log.has_enough
    log.add(violation(line=2))
    assert log.has_enough


def test_a_count_that_was_cut_short_says_so_in_the_log_of_the_whole_too() -> None:
    log, whole = ViolationLog(), ViolationLog()
    log.extend([violation()], more=COUNTED_MAX + 77)
    log.extend_consequences([], total=3)

    log.cut_short()
    whole.merge(log)

    with pytest.raises(ValidationError) as caught:
        whole.raise_if_any()
    assert (caught.value.total, caught.value.is_cut_short, caught.value.consequences) == (
        COUNTED_MAX,
        True,
        0,
    )


def test_no_violation_raises_nothing() -> None:
    ViolationLog().raise_if_any()


def test_the_error_has_the_fields_of_the_first_violation() -> None:
    log = ViolationLog()
    log.open_file(1, "more.ndjson")
    log.add(violation(file=1, line=8, file_name="more.ndjson", message="later"))
    log.add(
        violation(ViolationKind.ENUM, file=1, line=7, file_name="more.ndjson", message="first", row_id="x")
    )

    with pytest.raises(ValidationError) as caught:
        log.raise_if_any()

    error = caught.value
    assert str(error) == "execution error: more.ndjson:7: first"
    assert (error.kind, error.table_key, error.row_id) == ("enum", "node:Book", "x")
    assert (error.file, error.line) == ("more.ndjson", 7)
    assert error.violations == log.first_violations()
    assert error.total == 2


def test_a_file_without_a_name_is_told_by_its_line() -> None:
    log = ViolationLog()
    log.open_file(0, None)
    log.add(violation(line=3, message="wrong"))

    with pytest.raises(ValidationError, match=r"^execution error: line 3: wrong$") as caught:
        log.raise_if_any()

    assert (caught.value.file, caught.value.line) == (None, 3)


def test_a_mutation_has_no_lines_to_show() -> None:
    log = ViolationLog()
    log.add(violation(line=3, message="wrong"))

    with pytest.raises(ValidationError, match=r"^execution error: wrong$") as caught:
        log.raise_if_any()

    assert caught.value.line is None


def test_a_violation_without_a_row_has_no_line_to_show_either() -> None:
    log = ViolationLog()
    log.open_file(0, "a.ndjson")
    log.add(violation(file=NOWHERE, line=NOWHERE, message="wrong"))

    with pytest.raises(ValidationError, match=r"^execution error: wrong$") as caught:
        log.raise_if_any()

    assert (caught.value.file, caught.value.line) == (None, None)


def test_a_key_conflict_has_its_place_among_the_others() -> None:
    conflict = KeyConflictViolation(ViolationKind.UNIQUE, "twice", "node:Note", "n1", 0, 2, constraint=-1)
    log = ViolationLog()
    log.extend([violation(ViolationKind.UNIQUE, line=2, row_id="n1"), conflict, violation(line=3)])

    with pytest.raises(KeyConflict) as caught:
        log.raise_if_any()

    assert (caught.value.table_key, caught.value.row_id) == ("node:Note", "n1")
    log.add(violation(line=1))
    with pytest.raises(ValidationError):
        log.raise_if_any()


def test_violations_travel_between_processes() -> None:
    conflict = KeyConflictViolation(ViolationKind.UNIQUE, "twice", "node:Note", "n1", 0, 2)

    assert pickle.loads(pickle.dumps([violation(), conflict])) == [violation(), conflict]
