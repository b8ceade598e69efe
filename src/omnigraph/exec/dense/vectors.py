"""Vectors in memory, by slot: one pass of products finds all that can be among the nearest.

W1  Products are in single precision and their error is bounded: no row that belongs among the nearest is left
    out. Distances in double precision decide which of the candidates are nearest.
W2  A view is immutable and right for its pin; advancing costs the rows that changed and shares the base.
W3  A slot without a vector is not a candidate.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.core.arrays import Floats, Mask, SlotArray, Values
from omnigraph.exec.dense.slots import OpenTable, Slots, TablePin, empty_slots, plain
from omnigraph.storage.tables.rows import read_rows, row_ids_of
from omnigraph.storage.versions.difference import VersionDelta

Matrix: TypeAlias = npt.NDArray[np.float32]
Places: TypeAlias = npt.NDArray[np.intp]

PATCHES_MAX = 4_096  # vectors beside the base; more are folded into a new one
WHOLE_SHARE = 2  # from half of the rows, one pass over all is quicker than gathering those asked for
_BLOCK = 131_072  # numbers worked on at a time: they stay in the processor's cache
_HALF_STEP = 2.0**-24  # the greatest relative error of one operation in single precision
_EXACT_STEPS = 1e-12  # far above the error of sums in double precision, for any dimension
_UNDERFLOW = 2.0**-126  # of one product
_PRODUCT_MAX = 1e37  # lengths whose product is below it have no product that overflows


@dataclass(frozen=True, eq=False)
class Vectors:
    """Rows of vectors, and the square of each one's length; not a number where there is no vector (W3)."""

    matrix: Matrix
    squares: Floats

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.matrix.nbytes + self.squares.nbytes

    @cached_property
    def length_max(self) -> float:
        """The length of the longest vector."""
        return float(np.sqrt(np.fmax.reduce(self.squares, initial=0.0)))

    def take(self, places: Places) -> "Vectors":
        """Return rows by position."""
        return Vectors(self.matrix[places], self.squares[places])


@dataclass(frozen=True, eq=False)
class VectorBlock:
    """The vectors of a column as of one pin."""

    slots: Slots
    base: Vectors
    patched: SlotArray  # ascending; their vectors are those of the patch
    patch: Vectors

    @property
    def pins(self) -> tuple[TablePin, ...]:
        """The version that it is a function of."""
        return (self.slots.pin,)

    def parts(self) -> dict[int, int]:
        """Return the bytes of the pieces of memory it uses, by their identity."""
        return {id(self.base): self.base.nbytes, id(self.patch): self.patch.nbytes + self.patched.nbytes}

    def take(self, slots: SlotArray) -> Matrix:
        """Return the vectors of ascending slots that have one."""
        vectors = self.base.matrix.take(slots, axis=0, mode="clip")
        at, patches = self._patches(slots)
        vectors[at] = self.patch.matrix[patches]
        return vectors

    def candidates(self, slots: SlotArray, query: Floats, limit: int | None) -> SlotArray:
        """Return those of ascending slots that can be among the nearest `limit` (W1).

        Without a limit, all that have a vector.
        """
        at, patches = self._patches(slots)
        squares = self.base.squares.take(slots, mode="clip")
        squares[at] = self.patch.squares[patches]
        has_vector = ~np.isnan(squares)
        length = float(np.sqrt(np.dot(query, query)))
        longest = max(self.base.length_max, self.patch.length_max)
        if limit is None or limit >= len(slots) or longest * length >= _PRODUCT_MAX:
            return slots[has_vector]
        asked = query.astype(np.float32)
        products = _products(self.base.matrix, slots, asked)
        products[at] = np.vecdot(self.patch.matrix[patches], asked)
        errors = _errors(len(query), np.sqrt(squares), length)
        squares -= 2.0 * products  # now the squared distance, less the square of the query's length
        bound = np.partition(squares + errors, limit - 1)[limit - 1]
        is_near: Mask = has_vector if np.isnan(bound) else squares - errors <= bound
        return slots[is_near]

    def _patches(self, slots: SlotArray) -> tuple[Places, Places]:
        """Return which of ascending slots are in the patch: their positions here and there."""
        if not len(slots):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        at = np.searchsorted(slots, self.patched)
        patches = np.flatnonzero(slots.take(at, mode="clip") == self.patched)
        return at[patches], patches


def build_vectors(table: OpenTable, slots: Slots, name: str) -> VectorBlock:
    """Read the vectors of a version."""
    rows = read_rows(table.handle, [name])
    read = _vectors(plain(rows[name]))
    at = slots.of_row_ids(row_ids_of(rows))
    is_ordered = len(at) == slots.size and bool((at == np.arange(slots.size, dtype=np.int32)).all())
    base = read if is_ordered else _placed(_nothing(slots.size, read.matrix.shape[1]), at, read)
    return VectorBlock(slots, base, empty_slots(), _nothing(0, read.matrix.shape[1]))


def advance_vectors(block: VectorBlock, slots: Slots, delta: VersionDelta, name: str) -> VectorBlock:
    """Return the vectors as of a later pin, where the column may have another name (W2)."""
    row_ids, rows = delta.changed([name])
    changed = slots.of_row_ids(row_ids)
    assert (changed >= 0).all(), "a row of the version has no slot"
    if not len(changed):
        return VectorBlock(slots, block.base, block.patched, block.patch)
    kept = np.flatnonzero(~np.isin(block.patched, changed))
    added, before = _vectors(plain(rows[name])), block.patch.take(kept)
    patched = np.concatenate([block.patched[kept], changed])
    order = np.argsort(patched, kind="stable")
    patch = Vectors(
        np.concatenate([before.matrix, added.matrix])[order],
        np.concatenate([before.squares, added.squares])[order],
    )
    if len(patched) <= PATCHES_MAX:
        return VectorBlock(slots, block.base, patched[order], patch)
    dimension = patch.matrix.shape[1]
    whole = _placed(_nothing(slots.size, dimension), np.arange(len(block.base.squares)), block.base)
    return VectorBlock(slots, _placed(whole, patched[order], patch), empty_slots(), _nothing(0, dimension))


def _errors(dimension: int, lengths: Floats, length: float) -> Floats:
    """Return by how much the squared distances of vectors of some lengths from another may be wrong.

    A sum of products is off by at most as many half steps of the product of both lengths as it has terms,
    in whatever order they are added up; rounding the query costs one more.
    """
    steps = 2.0 * 1.1 * (dimension + 2) * _HALF_STEP * length
    errors: Floats = _EXACT_STEPS * np.square(lengths + length)
    errors += steps * lengths
    errors += 2.0 * dimension * _UNDERFLOW
    return errors


def _products(matrix: Matrix, slots: SlotArray, query: Matrix) -> Matrix:
    """Return the products of some rows with the query.

    Row by row: a product of the whole matrix would wait for BLAS threads, long on a busy machine.
    """
    if len(slots) * WHOLE_SHARE >= len(matrix):
        whole: Matrix = np.vecdot(matrix, query)
        return whole.take(slots, mode="clip")
    step = max(1, _BLOCK // len(query))
    gathered = np.empty((min(step, len(slots)), len(query)), np.float32)
    products = np.empty(len(slots), np.float32)
    for start in range(0, len(slots), step):
        some = slots[start : start + step]
        rows = gathered[: len(some)]
        matrix.take(some, axis=0, out=rows, mode="clip")
        np.vecdot(rows, query, out=products[start : start + step])
    return products


def _vectors(column: Values) -> Vectors:
    """Return the vectors of an Arrow column, in its order."""
    dimension = cast("pa.FixedSizeListType[Any]", column.type).list_size
    flat = cast("pa.FixedSizeListArray[Any]", column).flatten()  # leaves nulls out
    matrix = flat.to_numpy(zero_copy_only=False).astype(np.float32, copy=False).reshape(-1, dimension)
    vectors = Vectors(matrix, _lengths(matrix))
    if not column.null_count:
        return vectors
    at = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return _placed(_nothing(len(column), dimension), at, vectors)


def _lengths(matrix: Matrix) -> Floats:
    """Return the square of each row's length, in double precision."""
    squares = np.empty(len(matrix), np.float64)
    step = max(1, _BLOCK // matrix.shape[1])
    for start in range(0, len(matrix), step):
        rows = matrix[start : start + step].astype(np.float64)
        np.vecdot(rows, rows, out=squares[start : start + step])
    return squares


def _nothing(count: int, dimension: int) -> Vectors:
    return Vectors(np.zeros((count, dimension), np.float32), np.full(count, np.nan))


def _placed(vectors: Vectors, at: npt.NDArray[np.integer[Any]], some: Vectors) -> Vectors:
    """Return vectors that we own, after putting some into their places."""
    vectors.matrix[at], vectors.squares[at] = some.matrix, some.squares
    return vectors
