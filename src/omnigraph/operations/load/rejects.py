"""Violations of a load beyond the first: all of them in a file, and the rows they name left out."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.bulk.files import is_object, refuse_other_stores, whole_file
from omnigraph.bulk.load.new_rows import RowPlace
from omnigraph.bulk.sources.model import SourceInput
from omnigraph.core.errors import BadRequest
from omnigraph.operations.load.model import LoadOptions
from omnigraph.validate.violations import (
    NOWHERE,
    VIOLATIONS_MAX,
    Consequence,
    Violation,
    ViolationLog,
)

EVERY = 2**31 - 2  # violations: the largest limit that Spark can take


def new_log(options: LoadOptions) -> ViolationLog:
    """Return a log that keeps what the options need."""
    return ViolationLog(EVERY if options.needs_all_violations else VIOLATIONS_MAX)


@dataclass(slots=True)
class Rejection:
    """The rounds of a load that leaves out rows: what each of them found, and the places of all those rows.

    Another row may depend on one that is left out; that is found in the next round.
    """

    options: LoadOptions
    log: ViolationLog
    places: set[RowPlace] = field(default_factory=set)

    def take(self, found: ViolationLog) -> bool:
        """Record a round; return whether another one is needed.

        Raises:
            ValidationError, KeyConflict: nothing may be left out, or leaving out rows does not help.
        """
        self.log.merge(found)
        violations = found.first_violations()
        has_no_row = any(violation.file == NOWHERE for violation in violations)
        if violations and (self.options.on_error == "fail" or has_no_row):
            self.write()
            first = ViolationLog()
            first.merge(self.log)
            first.raise_if_any()
        fresh = {(violation.file, violation.line) for violation in violations} - self.places
        self.places |= fresh
        return bool(fresh)

    def tell_refused(self, found: ViolationLog) -> None:
        """Tell a round which nodes earlier ones have left out: edges to them follow from that."""
        refused: dict[str, list[str | None]] = {}
        for violation in self.log.first_violations():
            if violation.table_key is not None:
                refused.setdefault(violation.table_key, []).append(violation.row_id)
        for table_key, ids in refused.items():
            found.refuse(table_key, ids)

    def write(self) -> None:
        """Write every violation to the file that was asked for, in order, one object per line.

        Raises:
            BadRequest: the file cannot be written.
        """
        path = self.options.rejects
        if path is not None:
            write_rejects(path, self.log.first_violations(), self.options.input_names)

    @property
    def first(self) -> tuple[Violation, ...]:
        """The first violations, as an error would list them."""
        return self.log.first_violations()[:VIOLATIONS_MAX]


def refuse_input(path: Path, sources: Iterable[SourceInput]) -> None:
    """Make sure that a file for violations is not an input, which it would replace.

    Raises:
        BadRequest: it is an input, by whatever name, or an address in a store that is not written to.
    """
    refuse_other_stores(str(path))
    for source in sources:
        if source.path == str(path) or (not is_object(source.path) and _is_same_file(path, source.location)):
            raise _is_input(path)


def refuse_mapping(path: Path, mapping: Path) -> None:
    """Make sure that a file for violations is not the one that says how to read the input.

    Raises:
        BadRequest: it is.
    """
    if path == mapping or _is_same_file(path, str(mapping)):
        raise _is_input(path)


def _is_input(path: Path) -> BadRequest:
    return BadRequest(f"{path} is an input of this load: give another file for the rejected rows")


def _is_same_file(one: Path, other: str) -> bool:
    """Return whether two names stand for one file, as hard links do; a missing file equals no other."""
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - of texts
    except (OSError, ValueError):
        return False


def write_rejects(
    path: Path, violations: tuple[Violation, ...], input_names: Sequence[str | None] = ()
) -> None:
    """Write violations as NDJSON; the file is replaced as a whole, or left unchanged.

    Raises:
        BadRequest: the file cannot be written.
    """
    with whole_file(str(path)) as file:
        for violation in violations:
            file.write(
                json.dumps(_document(violation, input_names), ensure_ascii=False).encode(
                    errors="backslashreplace"
                )
                + b"\n"
            )


def _document(violation: Violation, input_names: Sequence[str | None]) -> dict[str, object]:
    has_place = violation.file != NOWHERE
    name = violation.file_name
    if name is None and has_place and violation.file < len(input_names):
        name = input_names[violation.file]  # errors leave out the name of a single input
    document: dict[str, object] = {
        "file": name,
        "input": violation.file if has_place else None,
        "line": violation.line if has_place else None,
        "kind": violation.kind.value,
        "table_key": violation.table_key,
        "row_id": violation.row_id,
        "message": violation.message,
    }
    if isinstance(violation, Consequence):
        document["because_of"] = {"table_key": violation.cause[0], "row_id": violation.cause[1]}
    return document
