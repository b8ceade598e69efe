"""Kuzu and Ladybug, which share a language, as engines of the benchmarks."""

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from bench.support.questions import Values
from bench.support.social import DIMENSION, Social

FETCH_ROWS = 100_000  # of one Arrow batch
FUSED = 60  # the constant of reciprocal rank fusion
TOP = 10

# A traversal of ours binds a set of neighbours. The data has no parallel edges and no loops, so that a plain
# pattern, which counts walks, gives the same rows. SHORTEST gives each node that is reached once, at its
# smallest distance and never the start, as bounds do with us.
TEXTS = {
    "point lookup": "MATCH (p:Person {handle: $handle}) RETURN p.name, p.age",
    "filtered count": "MATCH (p:Person) WHERE p.city = $city AND p.age >= $age RETURN count(*)",
    "one hop with filter": (
        "MATCH (p:Person {handle: $handle})-[:Knows]->(f:Person) WHERE f.age >= $age RETURN f.handle, f.age"
    ),
    "two hops distinct": (
        "MATCH (p:Person {handle: $handle})-[:Knows]->(f:Person)-[:Knows]->(g:Person) "
        "RETURN DISTINCT g.handle"
    ),
    "reach 1..3": ("MATCH (p:Person {handle: $handle})-[:Knows* SHORTEST 1..3]->(g:Person) RETURN count(*)"),
    "join with group-by": (
        "MATCH (p:Person)-[:Knows]->(f:Person) WHERE f.age >= $age RETURN p.city, count(*), avg(f.age)"
    ),
    "triangles": (
        "MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person)-[:Knows]->(a) "
        "WHERE a.city = $city RETURN count(*)"
    ),
    "anti-join": (
        "MATCH (p:Person) WHERE p.age >= $age AND NOT EXISTS { MATCH (:Person)-[:Knows]->(p) } "
        "RETURN count(*)"
    ),
    "top degree": (
        "MATCH (f:Person)-[:Knows]->(p:Person) RETURN p.handle, count(*) AS degree "
        "ORDER BY degree DESC, p.handle LIMIT 10"
    ),
    "BM25 top 10": (
        "CALL QUERY_FTS_INDEX('Person', 'bios', $words) RETURN node.handle, score "
        "ORDER BY score DESC, node.handle LIMIT 10"
    ),
    # Every vector that passes the filter is compared: an index asks for the filtered people as a graph first,
    # which takes longer than that.
    "vector top 10 with filter": (
        "MATCH (p:Person) WHERE p.age >= $age RETURN p.handle, "
        f"array_distance(p.taste, CAST($vector AS FLOAT[{DIMENSION}])) AS distance ORDER BY distance LIMIT 10"
    ),
}
NEAR = (
    f"CALL QUERY_VECTOR_INDEX('Person', 'tastes', $vector, {TOP}) "
    "RETURN node.handle, distance ORDER BY distance"
)
TEXT_RANKED = "CALL QUERY_FTS_INDEX('Person', 'bios', $words) RETURN node.handle, score"
HOP = "UNWIND $handles AS h MATCH (p:Person {handle: h})-[:Knows]->(f:Person) RETURN h, f.handle"
FRIENDS_NEAR = (
    "MATCH (me:Person {handle: $handle})-[:Knows]->(p:Person) "
    f"RETURN p.handle, array_distance(p.taste, CAST($vector AS FLOAT[{DIMENSION}])) AS d "
    f"ORDER BY d LIMIT {TOP}"
)
FRIENDS_TEXT = (
    "CALL QUERY_FTS_INDEX('Person', 'bios', $words) WITH node AS p, score "
    "MATCH (me:Person {handle: $handle})-[:Knows]->(p) RETURN p.handle, score ORDER BY score DESC, p.handle"
)


class Cypher:
    """A database of one of the two; both cannot be loaded into one process."""

    def __init__(self, name: str) -> None:
        """Take the name of the module."""
        self.name = name
        self._module: ModuleType = importlib.import_module(name)
        self._prepared: dict[str, Any] = {}
        self._has_text = self._has_vectors = False

    def load(self, folder: Path, data: Social) -> None:
        """Make a database of the data, with the indexes that come with the module."""
        self._connection = self._module.Connection(self._module.Database(str(folder / self.name)))
        self._has_vectors = "taste" in data.people.column_names
        taste = f", taste FLOAT[{DIMENSION}]" if self._has_vectors else ""
        self._run(
            "CREATE NODE TABLE Person(handle STRING PRIMARY KEY, name STRING, age INT64, city STRING, "
            f"bio STRING{taste})"
        )
        self._run("CREATE REL TABLE Knows(FROM Person TO Person, since INT64)")
        people, knows = data.people, data.knows  # the statements see the variables of this frame
        self._connection.execute("COPY Person FROM people")
        self._connection.execute("COPY Knows FROM knows")
        del people, knows
        self._has_text = self._has_extension("fts")
        if self._has_text:
            self._run("CALL CREATE_FTS_INDEX('Person', 'bios', ['bio'])")
        self._has_index = self._has_vectors and self._has_extension("vector")
        if self._has_index:
            self._run("CALL CREATE_VECTOR_INDEX('Person', 'tastes', 'taste', metric := 'l2')")

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def ask(self, question: str, values: Values) -> Callable[[], object] | None:
        """Return what gives the answer, or none if the engine cannot."""
        if "handles" in values:
            return self._batch(values["handles"])
        if question == "BM25 top 10" and not self._has_text:
            return None
        if question.startswith("hybrid"):
            if not self._has_text or not self._has_index:
                return None
            hybrid = self._hybrid if question == "hybrid plus one hop" else self._among_friends
            return lambda: hybrid(values)
        text = TEXTS[question]
        self._statement(text)
        return lambda: self._rows(text, values)

    def _batch(self, handles: object) -> Callable[[], object]:
        assert isinstance(handles, list)
        table = pa.table({"h": pa.array(handles)})

        def answer() -> object:
            keys = table  # the statement sees the variables of this frame
            text = "LOAD FROM keys MATCH (p:Person {handle: h}) RETURN p.handle, p.age"
            found = self._connection.execute(text).get_as_arrow(FETCH_ROWS)
            del keys
            return found

        return answer

    def _hybrid(self, values: Values) -> object:
        """Rank by meaning and by words, fuse the ranks, and follow the edges of the best."""
        near = [row[0] for row in self._rows(NEAR, {"vector": values["vector"]})]
        table = self._execute(TEXT_RANKED, {"words": values["words"]}).get_as_arrow(FETCH_ROWS)
        ranked = table.sort_by([(table.column_names[1], "descending"), (table.column_names[0], "ascending")])
        best = _fuse(near, ranked.column(0).to_pylist())
        known: dict[str, list[str]] = {handle: [] for handle in best}
        for handle, other in self._rows(HOP, {"handles": best}):
            known[handle].append(other)
        return [(handle, other) for handle in best for other in sorted(known[handle])][:TOP]

    def _among_friends(self, values: Values) -> object:
        near = [row[0] for row in self._rows(FRIENDS_NEAR, _only(values, "handle", "vector"))]
        text = [row[0] for row in self._rows(FRIENDS_TEXT, _only(values, "handle", "words"))]
        return [(handle,) for handle in _fuse(near, text)]

    def _has_extension(self, name: str) -> bool:
        """Say whether an extension is part of the module: nothing is downloaded."""
        try:
            self._run(f"LOAD EXTENSION {name}")
        except RuntimeError:
            return False
        return True

    def _run(self, text: str) -> None:
        self._connection.execute(text)

    def _statement(self, text: str) -> Any:  # noqa: ANN401 - neither module has types
        if text not in self._prepared:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self._prepared[text] = self._connection.prepare(text)
        return self._prepared[text]

    def _execute(self, text: str, values: Values) -> Any:  # noqa: ANN401
        return self._connection.execute(self._statement(text), dict(values))

    def _rows(self, text: str, values: Values) -> list[Any]:
        """Return rows as lists, which for few of them is quicker than Arrow."""
        found: list[Any] = self._execute(text, values).get_all()
        return found


def _only(values: Values, *names: str) -> Values:
    return {name: values[name] for name in names}


def _fuse(*rankings: list[str]) -> list[str]:
    score: dict[str, float] = {}
    for ranking in rankings:
        for rank, handle in enumerate(ranking):
            score[handle] = score.get(handle, 0.0) + 1 / (FUSED + rank + 1)
    return sorted(score, key=lambda handle: (-score[handle], handle))[:TOP]
