"""What a bulk operation tells while it works."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """The stages of a bulk operation, in their order."""

    START = "start"
    SURVEY = "count lines"
    READ = "read and check values"
    KEYS = "keys and duplicates"
    ENDPOINTS = "endpoints"
    CARDINALITY = "cardinality"
    WRITE = "write fragments"
    STAGE = "stage"
    COMMIT = "commit"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """How far a stage is; totals are zero where nobody knows them."""

    stage: Stage
    tasks_done: int = 0
    tasks_total: int = 0
    rows: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    is_done: bool = False


ProgressCallback = Callable[[ProgressEvent], None]


def silent(_event: ProgressEvent) -> None:
    """Tell nobody."""
