"""The known name that somebody may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches

LENGTH_MAX = 1_000  # characters; no name of anything is as long, and comparing takes time


def nearest_name(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """Return a help line with the known name closest to a wrong one; what is long was not meant as any."""
    if len(name) > LENGTH_MAX:
        return None
    known, lower = list(known), name.lower()
    matches = (
        get_close_matches(name, known, n=1)
        or [other for other in known if other.lower() == lower]
        or [other for other in known if lower in other.lower().split("_")]
    )
    return f"did you mean '{prefix}{matches[0]}'?" if matches else None


def hinting(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a wrong name: the known one that is most like it, if there is any."""
    help = nearest_name(name, known)
    return f"; {help}" if help else ""
