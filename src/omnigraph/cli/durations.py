"""Lengths of time as people type them: `7d`, `12h`, `90`."""

import re
from datetime import timedelta

import click

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"([0-9]{1,12})([smhdw]?)")
YEARS_MAX = 1_000
_SECONDS_MAX = YEARS_MAX * 366 * 86_400


class Duration(click.ParamType[timedelta]):
    """A whole number with a unit; without one it counts seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the length of time that was typed; anything else is a mistake in usage."""
        if isinstance(value, timedelta):
            return value
        found = _DURATION.fullmatch(str(value).strip().lower())
        seconds = 0 if found is None else int(found[1]) * _UNITS[found[2] or "s"]
        if found is None or seconds > _SECONDS_MAX:
            self.fail(
                f"{value!r} is not a length of time: give a whole number with s, m, h, d or w, such as 7d,"
                f" of at most {YEARS_MAX} years",
                param,
                ctx,
            )
        return timedelta(seconds=seconds)
