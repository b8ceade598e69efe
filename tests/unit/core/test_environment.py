"""Settings from the environment: what is malformed is its default, and says so."""

from enum import StrEnum

import pytest

from omnigraph.core.environment import number_setting, word_setting


class Speed(StrEnum):
    """Two words."""

    SLOW = "slow"
    FAST = "fast"


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), (" 7 ", 7), ("0", 0), ("", 5), ("9" * 18, 10**18 - 1)]
)
def test_a_number_is_read(text: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETTING", text)

    assert number_setting("SETTING", 5) == number
    assert number_setting("NO_SETTING", None) is None


@pytest.mark.parametrize("text", ["-1", "1.5", "two", "١٢", "9" * 19, "9" * 5_000, "1e3"])
def test_what_is_no_number_is_the_default_with_a_warning(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert number_setting("SETTING", 5, given={"SETTING": text}) == 5
    assert "SETTING=" in caplog.text
    assert "the default is used" in caplog.text


def test_a_number_below_the_least_is_the_default(caplog: pytest.LogCaptureFixture) -> None:
    assert number_setting("SETTING", 5, least=1, given={"SETTING": "0"}) == 5
    assert "is not a whole number of at least 1" in caplog.text


def test_a_number_above_the_most_is_the_default(caplog: pytest.LogCaptureFixture) -> None:
    assert number_setting("SETTING", 5, least=1, most=9, given={"SETTING": "9"}) == 9
    assert number_setting("SETTING", 5, least=1, most=9, given={"SETTING": "10"}) == 5
    assert "is not a whole number from 1 to 9" in caplog.text


@pytest.mark.parametrize(("text", "word"), [("fast", Speed.FAST), (" FAST ", Speed.FAST), ("", Speed.SLOW)])
def test_a_word_is_read(text: str, word: Speed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETTING", text)

    assert word_setting("SETTING", Speed.SLOW) is word


def test_another_word_is_the_default_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SETTING", "quick")

    assert word_setting("SETTING", Speed.SLOW) is Speed.SLOW
    assert "is not one of slow, fast: 'slow' is used" in caplog.text
