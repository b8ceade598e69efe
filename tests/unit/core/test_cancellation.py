"""Asking for the end of a call, and beginning: who comes first wins, and what landed is never cancelled."""

import pytest

from omnigraph.core.cancellation import (
    CallCancelled,
    Cancellation,
    begin_effects,
    cancellable,
    check_cancelled,
    take_back_effects,
)


def test_asking_before_the_beginning_ends_the_call() -> None:
    cancellation = Cancellation()

    assert cancellation.ask()
    with cancellable(cancellation), pytest.raises(CallCancelled):
        begin_effects()


def test_what_is_taken_back_can_be_cancelled_again() -> None:
    cancellation = Cancellation()
    with cancellable(cancellation):
        begin_effects()
        assert not cancellation.ask()
        take_back_effects()

        with pytest.raises(CallCancelled):
            check_cancelled()


@pytest.mark.case("surfaces", 830)
def test_a_second_work_without_effect_does_not_take_back_the_first() -> None:
    cancellation = Cancellation()
    with cancellable(cancellation):
        begin_effects()  # a load lands
        begin_effects()  # the build of its indexes has no effect
        take_back_effects()
        cancellation.ask()

        check_cancelled()
        assert cancellation.has_begun
