"""Which changes a caller wants."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChangeChoice:
    """Kinds, types and operations; an empty part wants all."""

    kinds: Sequence[str] = ()
    types: Sequence[str] = ()
    ops: Sequence[str] = ()
