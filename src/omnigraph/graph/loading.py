"""The verbs of a graph that bring data in: files, tables, records, objects, and vectors of texts.

A method imports its operation when it is called, as in `graph.py`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from omnigraph.core.errors import BadRequest
from omnigraph.core.values import named
from omnigraph.graph.administration import Administration
from omnigraph.graph.arguments import (
    check_flags,
    check_type_names,
    given_callback,
    given_file,
    given_number,
    given_words,
)

if TYPE_CHECKING:
    from omnigraph.bulk.connect.progress import ProgressCallback
    from omnigraph.operations.embed.model import EmbedKeywords, EmbedResult
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.load.inputs import GivenData
    from omnigraph.operations.load.load import LoadInput, LoadMode, LoadResult
    from omnigraph.operations.load.model import LoadKeywords, OnError


class Loading(Administration):
    """A handle's ways to bring data in, each as one commit."""

    def load(
        self,
        data: "GivenData",
        mode: "LoadMode",
        *,
        mapping: str | Path | None = None,
        branch: str | None = None,
        from_: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        index: bool = True,
        engine: "Engine" = "auto",
        master: str | None = None,
        dry_run: bool = False,
        on_error: "OnError" = "fail",
        rejects: str | Path | None = None,
        progress: "ProgressCallback | None" = None,
        strict_columns: bool = False,
        embed: bool = False,
        retry: float | None = None,
    ) -> "LoadResult":
        """Load files (as `omnigraph load --data` names them), NDJSON as bytes, dicts, or tables by type name.

        Dicts are the records of NDJSON: `[{"type": "Person", "data": {...}}]`. By type name there are tables
        or lists of dicts: `{"Person": [{...}], "Knows": [{"from": ..., "to": ...}]}`.

        All of it is one commit. `engine` says where the work is done, `master` where Spark runs. A dry run
        validates and writes nothing. `on_error="skip"` leaves out rows with violations; `rejects` is a file
        for all violations. `progress` is called with the progress of each stage. The files of a mapping come
        after the data. With `from_`, a missing branch is first created from that one.

        Mode `merge` replaces whole rows: what the input leaves out becomes null, and the result's `cleared`
        says where there was a value. With `strict_columns` a load that would do so is refused.

        With `embed`, rows that have a text and lack its `@embed` vector get one, in the same commit. If the
        provider fails for one text, nothing is loaded. A dry run sends it nothing.

        If another writer was first, the load is run again for up to `retry` seconds, as a mutation is; with
        mode `overwrite`, or on Spark with `embed`, never.
        """
        from omnigraph.bulk.connect.progress import silent
        from omnigraph.operations.load.inputs import given_inputs, needs_types
        from omnigraph.operations.load.load import LoadOptions, load

        check_flags(index=index, dry_run=dry_run, strict_columns=strict_columns, embed=embed)
        if isinstance(data, Mapping):
            check_type_names("data", data)
        options = LoadOptions(
            mode,
            engine=engine,
            master=master,
            is_dry_run=dry_run,
            on_error=on_error,
            rejects=given_file("rejects", rejects),
            progress=given_callback(progress, silent),
            has_strict_columns=strict_columns,
            makes_vectors=embed,
        )

        def inputs() -> "Iterator[LoadInput]":  # read after the checks at the entry, not before
            is_asked = needs_types(data, mapping)
            catalog = self._graph.catalog_on(self._on(branch), from_) if is_asked else self._graph.catalog
            yield from given_inputs(catalog, data, mapping, options.rejects)

        return load(
            self._graph,
            inputs(),
            options,
            branch=self._on(branch),
            from_=from_,
            actor=self._who(actor),
            message=message,
            index=index,
            retry=retry,
        )

    def load_tables(
        self, tables: Mapping[str, object], mode: "LoadMode", **options: "Unpack[LoadKeywords]"
    ) -> "LoadResult":
        """Load tables by type name as one commit: of pyarrow, pandas, polars or Spark, or lists of dicts.

        Edges have columns `from` and `to`. The options are those of `load`; a Spark DataFrame needs Spark.

        Raises:
            BadRequest: a type is not in the schema, or a value is not a table.
        """
        from omnigraph.operations.load.tables import table_input

        if not isinstance(tables, Mapping):
            raise BadRequest(f"expected tables by type name, as in {{'Person': table}}, not {named(tables)}")
        check_type_names("tables", tables)

        def inputs() -> "Iterator[LoadInput]":  # read after the checks at the entry, not before
            catalog = self._graph.catalog_on(self._on(options.get("branch")), options.get("from_"))
            for name, table in tables.items():
                yield table_input(catalog, name, table)

        return self.load(inputs(), mode, **options)

    def load_objects(
        self,
        objects: Iterable[object],
        mode: "LoadMode",
        *,
        types: Mapping[type, str] | None = None,
        **options: "Unpack[LoadKeywords]",
    ) -> "LoadResult":
        """Load instances of pydantic models and dataclasses, nodes and edges together, as one commit.

        The type of an instance is the name of its class, unless `types` says another for the class. A field
        is the property of its alias or name; `class_` may stand for `class`. An edge has the ids of its nodes
        in `from_` and `to`, or in `src` and `dst`. None is null, or nothing for an `id` and where the schema
        has a default. The options are those of `load`.

        Raises:
            BadRequest: a class has no type, or a value cannot be stored as it is: an object inside of an
                object, a datetime without a zone, a Decimal that would lose a digit.
        """
        from omnigraph.operations.load.objects import objects_input

        def inputs() -> "Iterator[LoadInput]":  # read after the checks at the entry, not before
            catalog = self._graph.catalog_on(self._on(options.get("branch")), options.get("from_"))
            yield objects_input(catalog, objects, types)

        return self.load(inputs(), mode, **options)

    def load_networkx(
        self,
        network: object,
        mode: "LoadMode",
        *,
        node_type: str | None = None,
        edge_type: str | None = None,
        **options: "Unpack[LoadKeywords]",
    ) -> "LoadResult":
        """Load a graph of networkx as one commit: what `to_networkx` made, or any other.

        A node `(type, id)`, and an edge with such a key, says what it is; others are of `node_type` and
        `edge_type`, and a node is its own id, and its key. Attributes are properties. Each edge of an
        undirected graph goes from its first end to its second.

        Raises:
            BadRequest: this is no graph, a type is unknown, or a value cannot be stored as it is.
        """
        from omnigraph.operations.load.network import NetworkTypes, network_input

        def inputs() -> "Iterator[LoadInput]":  # read after the checks at the entry, not before
            catalog = self._graph.catalog_on(self._on(options.get("branch")), options.get("from_"))
            yield network_input(catalog, network, NetworkTypes(node_type, edge_type))

        return self.load(inputs(), mode, **options)

    def load_dataframes(
        self, frames: Mapping[str, object], mode: "LoadMode", **options: "Unpack[LoadKeywords]"
    ) -> "LoadResult":
        """Load Spark DataFrames by type name, nodes and edges together, as one commit."""
        return self.load_tables(frames, mode, **options)

    def embed(
        self,
        type: str | Sequence[str] | None = None,
        select: str | Sequence[str] | None = None,
        **options: "Unpack[EmbedKeywords]",
    ) -> "EmbedResult":
        """Compute the missing vectors of `@embed` properties from their texts, as one commit.

        `type` names types, or one vector of a type as `Type.property`. `select` is `[Type:]property=value`:
        rows that any of them selects get new vectors. With `reembed_all`, so does every row that has a text.
        `batch` is how many texts the provider is given at a time; `engine` and `master` say where the work
        is done.

        Raises:
            BadRequest: a type, property or value is invalid.
            EmbeddingModelMismatch: a property records another model than the provider's.
            EmbeddingError: the provider failed, or its key is missing; nothing was written.
            ConflictError: another writer was first; nothing of this is visible.
        """
        from omnigraph.operations.embed.embed import embed
        from omnigraph.operations.embed.model import embed_options

        if "batch" in options and given_number("batch", options["batch"]) is None:
            raise BadRequest("batch must be a whole number, not None")
        wanted = embed_options(given_words("type", type), given_words("select", select), options)
        return embed(
            self._graph,
            wanted,
            branch=self._on(options.get("branch")),
            actor=self._who(options.get("actor")),
            message=options.get("message"),
            index=options.get("index", True),
        )
