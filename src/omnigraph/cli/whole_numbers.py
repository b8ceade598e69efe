"""Whole numbers as people type them: decimal digits, and nothing else that Python would read as a number."""

import re

import click

_DIGITS = re.compile(r"-?[0-9]{1,30}")


class WholeNumber(click.IntRange):
    """A number of plain digits: without underscores between them, blanks, or digits of other scripts."""

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number that was typed; anything else is a mistake in usage."""
        if isinstance(value, str) and _DIGITS.fullmatch(value) is None:
            self.fail(f"{value!r:.60} is not a whole number: give decimal digits, such as 10", param, ctx)
        return super().convert(int(value), param, ctx)
