"""How a commit section ends: one of three values, on which every removal depends.

U1  No effect is proved, never assumed, and only the commit section says it: whoever holds a `NoEffect` may
    remove what the attempt made.
U2  What an attempt made (a fork, a file) is its own until it is handed over to the section, and again when
    that has ended without effect. In between, and after every other end, recovery and cleanup decide from
    manifest and sidecars: a writer never removes what a durable record may name.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from omnigraph.commit.publish import PublishOutcome


class Proof(StrEnum):
    """Why nothing of a write can have had an effect."""

    NO_SIDECAR = "no sidecar was written, so no table was touched"
    REFUSED = "the first table refused the commit, and the sidecar is withdrawn"
    ON_FORKS = "all that was committed lies on forks that no pin names, and the sidecar is withdrawn"


@dataclass(frozen=True, slots=True)
class NoEffect:
    """Nothing of the write is there but what nothing names."""

    proof: Proof
    error: Exception


@dataclass(frozen=True, slots=True)
class Landed:
    """The write is visible."""

    published: PublishOutcome


@dataclass(frozen=True, slots=True)
class Pending:
    """The write had effects, or may have had; its sidecar stays until recovery has settled them."""

    operation_id: str
    error: Exception


SectionOutcome = NoEffect | Landed | Pending


class Made(Protocol):
    """Something that an attempt made and removes when it ends, unless it was handed over (U2)."""

    def hand_over(self) -> None:
        """Leave it to the commit section: from here on a durable record may name it."""
        ...

    def take_back(self, end: NoEffect, /) -> None:
        """Own it again: the section has ended without effect."""
        ...
