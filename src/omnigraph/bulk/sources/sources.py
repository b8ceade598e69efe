"""The sources of a load: files cut into slices, and the rows of a slice.

Q1  However the files are cut, the rows, their files and lines, and the violations of reading are the same:
    the local engine reads one slice for each file, a cluster as many as it likes, with the same functions.
Q2  A slice is read in blocks: memory does not grow with the file.
Q3  A fault of a file as a whole (it is missing, or not of its format) is an error when the slices are
    planned or read; a fault of its columns is one violation, at its first line; a fault of a record is a
    violation at the record's own line.

Planning looks at headers and footers only. Where a text (or a large Arrow file) is cut, the lines before a
slice are not known yet: `survey` counts those of one slice, wherever it runs, and `place` puts the counts
together.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from omnigraph.bulk.sources.csv import read_header
from omnigraph.bulk.sources.model import Compression, Format, Slice, SliceSurvey, SourceInput
from omnigraph.bulk.sources.tables import plan_arrow, plan_parquet, survey_arrow
from omnigraph.bulk.sources.text import read_blocks, size_of, survey_text
from omnigraph.bulk.sources.typed import read_typed
from omnigraph.catalog.model import Catalog
from omnigraph.validate.columns import TypedRows
from omnigraph.validate.expansion import within_memory
from omnigraph.validate.records import UNLIMITED, ReadLimits, read_ndjson
from omnigraph.validate.violations import ViolationLog

__all__ = [
    "WHOLE",
    "Compression",
    "Format",
    "Slice",
    "SliceSurvey",
    "SourceInput",
    "needs_survey",
    "place",
    "plan_slices",
    "read_slice",
    "read_source",
    "survey",
]

WHOLE = 2**62  # a target that no file reaches: one slice for each


def plan_slices(
    inputs: Sequence[SourceInput], *, target_bytes: int, limits: ReadLimits = UNLIMITED
) -> tuple[Slice, ...]:
    """Return the slices of files, in the order of records; a file that can be cut is cut at the target size.

    Raises:
        BadRequest: a file is not there, or not what its name says (Q3).
        ResourceLimit: a header, or what a file unpacks to, is above a limit.
    """
    assert target_bytes > 0, "a slice holds something"
    return tuple(found for source in inputs for found in _plan(source, target_bytes, limits))


def needs_survey(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """Return the slices that must be surveyed before the lines of later ones are known."""
    return tuple(slice_ for slice_, following in pairwise(slices) if _is_counted(slice_, following))


def survey(slice_: Slice) -> SliceSurvey:
    """Count what a slice holds, for `place`; reads the slice once and keeps nothing.

    Raises:
        BadRequest: the file cannot be read.
    """
    return survey_text(slice_) if slice_.source.format.is_text else survey_arrow(slice_)


def place(slices: Sequence[Slice], surveys: Iterable[SliceSurvey]) -> tuple[Slice, ...]:
    """Return the slices with exact lines, from the surveys of those that need one, in their order."""
    counts = iter(surveys)
    placed = list(slices[:1])
    for before, slice_ in pairwise(slices):
        if not _is_counted(before, slice_):
            placed.append(slice_)
            continue
        last, found = placed[-1], next(counts)
        is_csv = slice_.source.format is Format.CSV
        is_quoted = is_csv and last.is_quoted ^ (found.quotes % 2 == 1)
        placed.append(replace(slice_, lines_before=last.lines_before + found.lines, is_quoted=is_quoted))
    return tuple(placed)


def read_slice(
    slice_: Slice,
    catalog: Catalog,
    *,
    make_id: Callable[[], str],
    log: ViolationLog,
    limits: ReadLimits = UNLIMITED,
) -> Iterator[TypedRows]:
    """Yield the rows of a slice, some of one type at a time, in the order of the file (Q1).

    What cannot be read is in the log. The first slice of a file of one type yields rows of it even if there
    are none: such a file names its type.

    Raises:
        BadRequest: the file cannot be read.
        ResourceLimit: a line, or what the file unpacks to, is above a limit.
    """
    with within_memory(slice_.source.path):
        yield from _read_slice(slice_, catalog, make_id=make_id, log=log, limits=limits)


def _read_slice(
    slice_: Slice, catalog: Catalog, *, make_id: Callable[[], str], log: ViolationLog, limits: ReadLimits
) -> Iterator[TypedRows]:
    source = slice_.source
    log.open_file(source.file, source.name)
    if source.format is not Format.NDJSON:
        yield from read_typed(slice_, catalog, make_id=make_id, log=log, limits=limits)
        return
    for line, block in read_blocks(slice_, limits=limits):
        found = read_ndjson(
            block,
            file=source.file,
            file_name=source.name,
            catalog=catalog,
            make_id=make_id,
            log=log,
            limits=limits,
            first_line=line,
        )
        yield from found.values()
        if log.has_enough:
            return


def read_source(
    source: SourceInput,
    catalog: Catalog,
    *,
    make_id: Callable[[], str],
    log: ViolationLog,
    limits: ReadLimits = UNLIMITED,
) -> Iterator[TypedRows]:
    """Yield the rows of a whole file, as one slice.

    Raises:
        BadRequest: the file cannot be read.
        ResourceLimit: a line, or what the file unpacks to, is above a limit.
    """
    for slice_ in plan_slices([source], target_bytes=WHOLE, limits=limits):
        yield from read_slice(slice_, catalog, make_id=make_id, log=log, limits=limits)


def _is_counted(slice_: Slice, following: Slice) -> bool:
    """Return whether the lines before a slice depend on what the previous one holds; Parquet's do not."""
    return not following.is_first and slice_.source.format is not Format.PARQUET


def _plan(source: SourceInput, target_bytes: int, limits: ReadLimits) -> Iterator[Slice]:
    match source.format:
        case Format.NDJSON:
            return _plan_text(source, target_bytes, start=0, lines_before=0)
        case Format.CSV:
            header = read_header(source, limits)
            return _plan_text(
                source, target_bytes, start=header.size, lines_before=header.lines, columns=header.columns
            )
        case Format.PARQUET:
            return plan_parquet(source, target_bytes, limits)
        case Format.ARROW:
            return plan_arrow(source, target_bytes, limits)


def _plan_text(
    source: SourceInput, target_bytes: int, *, start: int, lines_before: int, columns: tuple[str, ...] = ()
) -> Iterator[Slice]:
    """Yield byte ranges of equal length; a packed file is one slice."""
    size = size_of(source)
    if source.compression is not None:
        yield Slice(source, 0, start, None, size, lines_before, header=columns)
        return
    count = max(1, -(-(size - start) // target_bytes))
    step = max(1, -(-(size - start) // count))
    for number in range(count):
        first = start + number * step
        last = min(first + step, size)
        yield Slice(source, number, first, last, last - first, lines_before, header=columns)
