"""Vectors that the rows of a load lack, made from their texts before anything is committed.

X1  A row without a vector is checked as if it had one. No text is sent before everything about the load has
    been checked, but for what another writer changes until the commit.
X2  Between its check and its vector, a row on an executor has numbers that no input can have: they say which
    vectors are to be made, and none of them is ever committed.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.embed import (
    VectorColumn,
    own_provider,
    vector_columns,
    with_numbers_at,
    with_vectors,
    with_vectors_at,
)
from omnigraph.bulk.load.new_rows import WrittenRows
from omnigraph.catalog.model import Catalog
from omnigraph.core.errors import EmbeddingModelMismatch
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.provider import TEXTS_MAX, Provider
from omnigraph.validate.columns import TypedRows, to_mask

if TYPE_CHECKING:
    from omnigraph.storage.tables.fragments import TaskTable, WrittenFragment

STAND_IN = 0.0  # passes every check
MARK = math.nan  # a vector of an input is finite (X2)


@dataclass(frozen=True, slots=True)
class VectorsMade:
    """A fragment that was written again with its vectors, and how many those are."""

    fragment: "WrittenFragment"
    vectors: int


def check_models(catalog: Catalog, tables: Iterable[str], model: str) -> bool:
    """Return whether any of these tables has vectors that are made from texts.

    Raises:
        EmbeddingModelMismatch: one of them records another model.
    """
    has_any = False
    for table_key in tables:
        type_ = catalog.type_of(table_key)
        for column in vector_columns(type_):
            has_any = True
            embed = type_.properties[column.target].embed
            recorded = None if embed is None else embed.model
            if recorded not in {None, model}:
                raise EmbeddingModelMismatch(
                    property=f"{type_.name}.{column.target}", recorded=str(recorded), actual=model
                )
    return has_any


def standing_in(rows: TypedRows, number: float) -> TypedRows:
    """Return rows in which every vector that is to be made consists of this number."""
    table = rows.table
    for column in vector_columns(rows.type):
        table = with_numbers_at(table, column, _lacking(table, column), number)
    return replace(rows, table=table)


def with_made_vectors(rows: TypedRows, provider: Provider) -> tuple[TypedRows, int]:
    """Return rows with the vectors that they lack, and how many those are.

    Raises:
        EmbeddingError: the provider failed.
    """
    table, made = rows.table, 0
    for column in vector_columns(rows.type):
        table, count = with_vectors(table, column, provider, batch=TEXTS_MAX, again=False)
        made += count
    return replace(rows, table=table), made


def write_with_vectors(
    table: "TaskTable",
    rows: WrittenRows,
    columns: tuple[VectorColumn, ...],
    config: EmbeddingConfig,
) -> VectorsMade | None:
    """Write a fragment of a task again with the vectors that are marked in it (X2); nothing without any.

    Raises:
        EmbeddingError: the provider failed, or there is no key for it here.
        StorageError: the store failed.
    """
    from omnigraph.storage.tables.fragments import FragmentWriter

    names = pa.ipc.read_schema(pa.py_buffer(table.schema)).names
    parts = list(rows.read(names))
    wanted = [
        (number, column, _marked(part, column))
        for number, (part, _) in enumerate(parts)
        for column in columns
    ]
    if not any(places for _, _, places in wanted):
        return None
    whole = [part for part, _ in parts]
    with own_provider(config) as provider:
        for number, column, places in wanted:
            whole[number] = with_vectors_at(whole[number], column, places, provider, batch=TEXTS_MAX)
    writer = FragmentWriter(table)
    fragment = writer.write(
        pa.concat_tables(whole),
        pa.concat_tables([places for _, places in parts if places is not None]),
    )
    writer.sync()
    made = sum(len(places) for _, _, places in wanted)
    return VectorsMade(replace(fragment, lines=rows.fragment.lines), made)


def _lacking(rows: pa.Table, column: VectorColumn) -> list[int]:
    """Return the rows with a text and without its vector."""
    has_vector = rows[column.target].combine_chunks().is_valid()
    has_text = np.array([bool(text) for text in rows[column.source].to_pylist()], dtype=np.bool_)
    found: list[int] = np.flatnonzero(has_text & ~to_mask(has_vector)).tolist()
    return found


def _marked(rows: pa.Table, column: VectorColumn) -> list[int]:
    """Return the rows whose vector is to be made (X2)."""
    old = rows[column.target].combine_chunks()
    numbers = np.asarray(pc.list_flatten(old), dtype=np.float32).reshape(-1, column.dimension)
    with_vector = np.flatnonzero(np.asarray(old.is_valid()))
    found: list[int] = with_vector[np.isnan(numbers[:, 0])].tolist()
    return found
