"""How a commit section ends: one of three values, on which every removal depends.

U1  No effect is proved, never assumed, and only the commit section states it: the holder of a `NoEffect` may
    remove what the attempt made.
U2  What an attempt made (a fork, a file) is its own until it is handed over to the section, and again when
    that has ended without effect. In between, and after every other end, recovery and cleanup decide from the
    manifest and the sidecars: a writer never removes what a durable record may name.
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
    """The write has left nothing but what nothing names."""

    proof: Proof
    error: Exception


@dataclass(frozen=True, slots=True)
class Landed:
    """The write is visible."""

    published: PublishOutcome


@dataclass(frozen=True, slots=True)
class Pending:
    """The write had effects, or may have had some; its sidecar stays until recovery has settled them."""

    operation_id: str
    error: Exception


SectionOutcome = NoEffect | Landed | Pending


class Made(Protocol):
    """Something that an attempt made and removes when it ends, unless it was handed over (U2)."""

    def hand_over(self) -> None:
        """Hand it over to the commit section: from here on a durable record may name it."""
        ...

    def take_back(self, end: NoEffect, /) -> None:
        """Take it back: the section has ended without effect."""
        ...
