"""The questions of the set checks, answered by Spark: joins of keys, and only the first answers come back.

Where nothing is wrong, a question is one pass over keys where they are stored (`quick`); which rows are to
blame, and in which order, is looked into only when something may be wrong.

P1  Spark's equality is that of `KeyQuestions`: null equals nothing in a join, and both zeros are one value.
P2  Rows are never sorted to be compared: they are hashed, or sent to all executors where they are few.
"""

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window, WindowSpec, functions

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.load.key_frames import NewFrames, committed_frame
from omnigraph.bulk.load.key_types import decode
from omnigraph.bulk.load.quick import KeyPiece, may_exceed, may_meet, may_miss, may_repeat
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.validate.questions import (
    COUNT,
    FILE,
    HOLDER,
    ID,
    LINE,
    NONE_REFUSED,
    NOTHING,
    FoundRows,
    Refused,
    null_of,
)
from omnigraph.validate.set_checks import TableTraits, ends

BROADCAST_ROWS_MAX = 2_000_000  # about 200 MB of short ids in a hash table; beyond, both sides are shuffled
_PLACE = (FILE, LINE, ID)


class SparkQuestions:
    """Answers about a load whose rows are on the executors."""

    def __init__(
        self,
        jobs: Jobs,
        catalog: Catalog,
        *,
        traits: Mapping[str, TableTraits],
        frames: NewFrames,
        rows: Mapping[str, int],
        committed: Mapping[str, tuple[KeyPiece, ...]],
        limit: int,
    ) -> None:
        """Take the load by table, its rows, what is committed, and how many rows an answer may hold."""
        self._jobs, self._catalog, self._traits, self._limit = jobs, catalog, traits, limit
        self._frames, self._rows, self._committed = frames, rows, committed
        self._repeats: dict[str, bool] = {}
        self._apart: set[str] = set()  # tables whose new ids are known to differ from all committed ones

    def duplicates(self, table_key: str, columns: Sequence[str], shown: Sequence[str] = ()) -> FoundRows:
        """Return the rows whose tuple occurs in an earlier row."""
        if self._rows.get(table_key, 0) < 2 or (list(columns) == [ID] and self._has_fresh_ids(table_key)):
            return NOTHING
        type_ = self._catalog.type_of(table_key)
        rows = self._written(type_, [*columns, *shown])
        if not self._has_repeats(type_, columns):
            return NOTHING
        return self._found(type_, self._later(rows, columns), [*columns, *shown])

    def existing(self, table_key: str, columns: Sequence[str]) -> FoundRows:
        """Return the rows whose tuple is also in a committed row that the write leaves alone."""
        type_, by_id = self._catalog.type_of(table_key), list(columns) == [ID]
        if by_id and self._is_apart(table_key):
            self._apart.add(table_key)
            return NOTHING
        committed = self._kept_rows(type_, columns)
        if committed is None or not self._rows.get(table_key, 0):
            return NOTHING
        asked = self._written(type_, columns) if by_id else self._folded(type_, columns)
        held = committed.select(
            *(functions.col(name).alias(f"@@{name}") for name in dict.fromkeys([*columns, ID]))
        )
        own = None if by_id else self._own_ids(table_key)
        if own is not None:
            held = held.join(own, functions.col(f"@@{ID}") == functions.col("@own"), "left_anti")
        condition = _all_equal(columns)
        joined = asked.join(held, condition, "inner")
        first = joined.groupBy(*dict.fromkeys([FILE, LINE, ID, *columns])).agg(
            functions.min(f"@@{ID}").alias(HOLDER)
        )
        if self._has_repeats(type_, columns):
            later = self._later(self._written(type_, columns), columns).select(FILE, LINE)
            first = first.join(later, [FILE, LINE], "left_anti")
        found = self._found(type_, first, columns, extra=(HOLDER,))
        if by_id and not found.total:
            self._apart.add(table_key)
        return found

    def missing(self, edge: EdgeType, refused: Refused = NONE_REFUSED) -> tuple[FoundRows, FoundRows]:
        """Return the edges with an end that is neither written nor committed and kept, nor refused."""
        if not self._rows.get(edge.table_key, 0):
            return NOTHING, NOTHING
        if self._is_complete(edge):
            return NOTHING, NOTHING
        rows = self._folded(edge, ["src", "dst"])
        source, target = (
            self._missing(rows.where(~_is_among(column, refused.get(f"node:{node}", ()))), edge, column, node)
            for column, node in ends(edge)
        )
        return source, target

    def following(self, edge: EdgeType, refused: Refused) -> tuple[FoundRows, FoundRows]:
        """Return the edges with an end that is missing because the node was refused."""
        if not self._rows.get(edge.table_key, 0):
            return NOTHING, NOTHING
        rows = self._folded(edge, ["src", "dst"])
        source, target = (
            self._missing(rows.where(_is_among(column, refused.get(f"node:{node}", ()))), edge, column, node)
            for column, node in ends(edge)
        )
        return source, target

    def retained(self, edge: EdgeType) -> tuple[FoundRows, FoundRows]:
        """Return committed edges outside the write with an end that it removes."""
        answers = [self._retained(edge, column, node) for column, node in ends(edge)]
        return answers[0], answers[1]

    def counts(self, edge: EdgeType) -> tuple[FoundRows, FoundRows]:
        """Return the rows beyond the maximum, and the sources below the minimum."""
        if self._is_within(edge):
            return NOTHING, NOTHING
        rows = self._folded(edge, ["src"])
        totals = self._totals(edge, rows)
        below = NOTHING
        if edge.low > 0:
            few = totals.where(functions.col("@total") < edge.low)
            below = self._found_by_id(
                few.select(functions.col("@src").alias(ID), functions.col("@total").alias(COUNT))
            )
        if edge.high is None:
            return NOTHING, below
        over = totals.where((functions.col("@total") > edge.high) & (functions.col("@added") > 0))
        if self._jobs.run(lambda: over.limit(1).count()) == 0:
            return NOTHING, below
        window = _window("src", *_PLACE)
        numbered = rows.join(over, functions.col("src") == functions.col("@src"), "inner").withColumn(
            "@number", functions.row_number().over(window)
        )
        room = functions.greatest(
            functions.lit(edge.high) - (functions.col("@total") - functions.col("@added")), functions.lit(0)
        )
        beyond = numbered.where(functions.col("@number") == room + 1).withColumn(
            COUNT, functions.col("@total")
        )
        return self._found(edge, beyond, ["src"], extra=(COUNT,)), below

    def folded_count(self, table_key: str) -> int:
        """Return how many ids the rows of a table have."""
        type_ = self._catalog.type_of(table_key)
        if not self._has_repeats(type_, [ID]):
            return self._rows.get(table_key, 0)
        return self._jobs.run(self._written(type_, []).select(ID).distinct().count)

    def cleared(self, table_key: str, names: Sequence[str]) -> dict[str, int]:
        """Return, for each property, how many committed rows have a value now and null afterwards."""
        type_, flags = self._catalog.type_of(table_key), [null_of(name) for name in names]
        committed = self._kept_rows(type_, flags) if self._own_ids(table_key) is not None else None
        if committed is None or not names:
            return {}
        held = committed.select(
            functions.col(ID).alias("@id"), *(functions.col(flag).alias(f"@{flag}") for flag in flags)
        )
        joined = self._folded(type_, flags).join(held, functions.col(ID) == functions.col("@id"), "inner")
        became = [functions.col(flag) & ~functions.col(f"@{flag}") for flag in flags]
        return self._count_each(joined, dict(zip(names, became, strict=True)))

    def replaced(self, table_key: str, names: Sequence[str]) -> dict[str, int]:
        """Return for each of these properties how many committed rows with a value are written anew."""
        type_, flags = self._catalog.type_of(table_key), [null_of(name) for name in names]
        committed = self._kept_rows(type_, flags) if self._own_ids(table_key) is not None else None
        if committed is None or not names:
            return {}
        written = self._written(type_, []).select(functions.col(ID).alias("@id")).distinct()
        joined = committed.join(written, functions.col(ID) == functions.col("@id"), "left_semi")
        return self._count_each(joined, {name: ~functions.col(null_of(name)) for name in names})

    def _count_each(self, rows: DataFrame, conditions: Mapping[str, SparkColumn]) -> dict[str, int]:
        """Return in how many rows each condition holds, without those that hold in none."""
        sums = rows.agg(*(functions.count_if(holds).alias(name) for name, holds in conditions.items()))
        (counts,) = self._jobs.collect(sums).to_pylist()
        return {name: int(counts[name]) for name in conditions if counts[name]}

    # Frames

    def _written(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> DataFrame:
        return self._frames.written(type_, columns)

    def _folded(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> DataFrame:
        """Return the last row of each id."""
        rows = self._written(type_, columns)
        if self._has_fresh_ids(type_.table_key) or not self._has_repeats(type_, [ID]):
            return rows
        last = functions.row_number().over(_window(ID, FILE, LINE, is_descending=True))
        return rows.withColumn("@last", last).where(functions.col("@last") == 1).drop("@last")

    def _kept_rows(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> DataFrame | None:
        """Return the committed rows of a table, unless the write replaces them all or there are none."""
        table_key = type_.table_key
        traits, committed = self._traits.get(table_key), self._committed.get(table_key)
        if not committed or (traits is not None and traits.is_overwrite):
            return None
        return self._committed_rows(type_, columns)

    def _committed_rows(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> DataFrame:
        return committed_frame(self._jobs, type_, self._committed[type_.table_key], columns)

    def _node_ids(self, node: str) -> DataFrame | None:
        """Return the ids of a node type after the write, as `@id`, sent to all executors if they are few."""
        type_ = self._catalog.nodes[node]
        parts, count = [], 0
        if self._rows.get(type_.table_key, 0):
            parts.append(self._written(type_, []).select(functions.col(ID).alias("@id")))
            count += self._rows[type_.table_key]
        kept = self._kept_rows(type_, [])
        if kept is not None:
            parts.append(kept.select(functions.col(ID).alias("@id")))
            count += sum(piece.rows for piece in self._committed[type_.table_key])
        if not parts:
            return None
        whole = parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
        return functions.broadcast(whole) if count <= BROADCAST_ROWS_MAX else whole.hint("shuffle_hash")

    def _removed_ids(self, node: str) -> DataFrame | None:
        """Return the ids of nodes that an overwrite takes away, as `@id`."""
        type_ = self._catalog.nodes[node]
        traits, committed = self._traits.get(type_.table_key), self._committed.get(type_.table_key)
        if traits is None or not traits.is_overwrite or not committed:
            return None
        gone = self._committed_rows(type_, []).select(functions.col(ID).alias("@id"))
        if not self._rows.get(type_.table_key, 0):
            return gone
        kept = self._written(type_, []).select(functions.col(ID).alias("@own"))
        return gone.join(kept, functions.col("@id") == functions.col("@own"), "left_anti")

    def _own_ids(self, table_key: str) -> DataFrame | None:
        """Return the ids under which committed rows may be replaced, as `@own`; `None` if none can be."""
        if table_key not in self._traits or self._has_fresh_ids(table_key) or table_key in self._apart:
            return None
        own = self._written(self._catalog.type_of(table_key), [])
        return own.select(functions.col(ID).alias("@own"))

    def _totals(self, edge: EdgeType, rows: DataFrame) -> DataFrame:
        """Return, for each source that the write touches, `@src`, `@added` and `@total` edges after it."""
        added = rows.groupBy(functions.col("src").alias("@src")).agg(functions.count("*").alias("@added"))
        left = self._left_sources(edge) if edge.low > 0 else None
        if left is not None:
            touched = added.select("@src").unionAll(left).distinct()
            added = touched.join(added, ["@src"], "left").na.fill(0, ["@added"])
        committed = self._kept_rows(edge, ["src"])
        if committed is None:
            totals = added.withColumn("@total", functions.col("@added"))
        else:
            own = self._own_ids(edge.table_key)
            if own is not None:
                committed = committed.join(own, functions.col(ID) == functions.col("@own"), "left_anti")
            count = functions.count("*").alias("@kept")
            counted = committed.groupBy(functions.col("src").alias("@src")).agg(count)
            totals = added.join(counted, ["@src"], "left").na.fill(0, ["@kept"])
            totals = totals.withColumn("@total", functions.col("@added") + functions.col("@kept"))
        removed = self._removed_ids(edge.source)
        if removed is not None:
            totals = totals.join(removed, functions.col("@src") == functions.col("@id"), "left_anti")
        return totals.select("@src", "@added", "@total")

    def _left_sources(self, edge: EdgeType) -> DataFrame | None:
        """Return the sources of committed edges that the write replaces or removes, as `@src`."""
        if not self._committed.get(edge.table_key):
            return None
        committed = self._committed_rows(edge, ["src"])
        if not self._traits[edge.table_key].is_overwrite:
            own = self._own_ids(edge.table_key)
            if own is None:
                return None
            committed = committed.join(own, functions.col(ID) == functions.col("@own"), "left_semi")
        return committed.select(functions.col("src").alias("@src"))

    # Answers

    def _has_fresh_ids(self, table_key: str) -> bool:
        return table_key in self._traits and self._traits[table_key].has_fresh_ids

    def _has_repeats(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> bool:
        """Return whether a tuple occurs twice; asked once for each table and columns."""
        name = f"{type_.table_key} {','.join(columns)}"
        if name not in self._repeats:
            is_plain = self._rows.get(type_.table_key, 0) < 2 or (
                list(columns) == [ID] and self._has_fresh_ids(type_.table_key)
            )
            self._repeats[name] = not is_plain and self._look_for_repeats(type_, columns)
        return self._repeats[name]

    def _look_for_repeats(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> bool:
        if not may_repeat(self._jobs, self._frames.pieces(type_.table_key), columns):
            return False
        rows = self._written(type_, columns).where(_no_nulls(columns))
        repeated = rows.groupBy(*columns).agg(functions.count("*").alias("@n")).where(functions.col("@n") > 1)
        return self._jobs.run(lambda: repeated.limit(1).count()) > 0

    def _later(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Return the rows whose tuple occurs in an earlier one."""
        window = _window(*columns, order=_PLACE)
        numbered = rows.where(_no_nulls(columns)).withColumn("@number", functions.row_number().over(window))
        return numbered.where(functions.col("@number") > 1).drop("@number")

    def _committed_pieces(self, table_key: str) -> tuple[KeyPiece, ...]:
        """Return the committed rows that the write leaves in place, or replaces one by one."""
        traits, committed = self._traits.get(table_key), self._committed.get(table_key)
        return () if committed is None or (traits is not None and traits.is_overwrite) else committed

    def _is_apart(self, table_key: str) -> bool:
        """Return whether no new id is a committed one, for certain."""
        return not may_meet(self._jobs, self._frames.pieces(table_key), self._committed_pieces(table_key))

    def _is_complete(self, edge: EdgeType) -> bool:
        """Return whether no end of any edge is missing, for certain."""
        edges = self._frames.pieces(edge.table_key)
        by_node: dict[str, list[str]] = {}
        for column, node in ends(edge):
            by_node.setdefault(node, []).append(column)
        for node, columns in by_node.items():
            known = (*self._frames.pieces(f"node:{node}"), *self._committed_pieces(f"node:{node}"))
            if may_miss(self._jobs, edges, columns, known):
                return False
        return True

    def _is_within(self, edge: EdgeType) -> bool:
        """Return whether no source has too few or too many edges, for certain."""
        traits, edges = self._traits[edge.table_key], self._frames.pieces(edge.table_key)
        has_left = edge.low > 0 and self._left_sources(edge) is not None
        if has_left or (edge.low > 1 and self._own_ids(edge.table_key) is not None):
            return False
        committed = () if traits.is_overwrite else self._committed_pieces(edge.table_key)
        return not may_exceed(self._jobs, edges, committed, low=edge.low, high=edge.high)

    def _missing(self, rows: DataFrame, edge: EdgeType, column: str, node: str) -> FoundRows:
        nodes = self._node_ids(node)
        if nodes is not None:
            rows = rows.join(nodes, functions.col(column) == functions.col("@id"), "left_anti")
        return self._found(edge, rows, [column])

    def _retained(self, edge: EdgeType, column: str, node: str) -> FoundRows:
        removed, committed = self._removed_ids(node), self._kept_rows(edge, [column])
        if removed is None or committed is None:
            return NOTHING
        found = committed.join(removed, functions.col(column) == functions.col("@id"), "left_semi")
        own = self._own_ids(edge.table_key)
        if own is not None:
            found = found.join(own, functions.col(ID) == functions.col("@own"), "left_anti")
        return self._found_by_id(found.select(ID, column))

    def _found(
        self, type_: NodeType | EdgeType, rows: DataFrame, columns: Sequence[str], extra: Sequence[str] = ()
    ) -> FoundRows:
        """Bring back the first rows in order, and how many there are."""
        names = list(dict.fromkeys([*_PLACE, *columns, *extra]))
        answer = self._first(rows.select(*names), _PLACE)
        schema = arrow_schema(type_)
        columns_ = [
            decode(answer.rows[name], schema.field(name).type) if name in schema.names else answer.rows[name]
            for name in names
        ]
        return FoundRows(pa.Table.from_arrays(columns_, names=names), answer.total)

    def _found_by_id(self, rows: DataFrame) -> FoundRows:
        return self._first(rows, (ID,))

    def _first(self, rows: DataFrame, order: Sequence[str]) -> FoundRows:
        first = self._jobs.collect(rows.orderBy(*order).limit(self._limit + 1))
        total = first.num_rows
        if total > self._limit:
            total = self._jobs.run(rows.count)
        return FoundRows(first.slice(0, self._limit), total)


def _window(*keys: str, order: Sequence[str] | None = None, is_descending: bool = False) -> WindowSpec:
    if order is None:
        keys, order = keys[:1], keys[1:]
    ordering = [functions.col(name).desc() if is_descending else functions.col(name) for name in order]
    return Window.partitionBy(*keys).orderBy(*ordering)


def _no_nulls(columns: Sequence[str]) -> SparkColumn:
    condition: SparkColumn = functions.lit(True)
    for name in columns:
        condition &= functions.col(name).isNotNull()
    return condition


def _is_among(column: str, ids: Collection[str]) -> SparkColumn:
    """Return whether a column is one of some ids, which are no more than a log keeps of refused rows."""
    return functions.col(column).isin(sorted(ids)) if ids else functions.lit(False)


def _all_equal(columns: Sequence[str]) -> SparkColumn:
    condition: SparkColumn = functions.lit(True)
    for name in columns:
        condition &= functions.col(name) == functions.col(f"@@{name}")
    return condition
