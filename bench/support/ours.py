"""Omnigraph as an engine of the benchmarks."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import omnigraph
from bench.support.questions import Values
from bench.support.social import DIMENSION, Social
from omnigraph.graph.graph import Graph

_PERSON = "handle: String @key  name: String  age: I64  city: String @index  bio: String @index"
_VECTOR = f"Vector({DIMENSION})"

TEXTS = {
    "point lookup": """
        query q($handle: String) { match { $p: Person { handle: $handle } } return { $p.name, $p.age } }
    """,
    "filtered count": """
        query q($city: String, $age: I64) {
            match { $p: Person { city: $city }  $p.age >= $age }
            return { count($p) as people }
        }
    """,
    "one hop with filter": """
        query q($handle: String, $age: I64) {
            match { $p: Person { handle: $handle }  $p knows $f  $f.age >= $age }
            return { $f.handle, $f.age }
        }
    """,
    # Grouping is how the language says distinct.
    "two hops distinct": """
        query q($handle: String) {
            match { $p: Person { handle: $handle }  $p knows $f  $f knows $g }
            return { $g.handle, count($f) as ways }
        }
    """,
    "reach 1..3": """
        query q($handle: String) {
            match { $p: Person { handle: $handle }  $p knows{1,3} $g }
            return { count($g) as people }
        }
    """,
    "join with group-by": """
        query q($age: I64) {
            match { $p: Person  $p knows $f  $f.age >= $age }
            return { $p.city, count($f) as known, avg($f.age) as mean }
        }
    """,
    "triangles": """
        query q($city: String) {
            match { $a: Person { city: $city }  $a knows $b  $b knows $c  $c knows $a }
            return { count($a) as triangles }
        }
    """,
    "anti-join": """
        query q($age: I64) {
            match { $p: Person  $p.age >= $age  not { $_ knows $p } }
            return { count($p) as people }
        }
    """,
    "top degree": """
        query q() {
            match { $p: Person  $f knows $p }
            return { $p.handle, count($f) as degree }
            order { degree desc }
            limit 10
        }
    """,
    "BM25 top 10": """
        query q($words: String) {
            match { $p: Person }
            return { $p.handle }
            order { bm25($p.bio, $words) }
            limit 10
        }
    """,
    "vector top 10 with filter": f"""
        query q($vector: {_VECTOR}, $age: I64) {{
            match {{ $p: Person  $p.age >= $age }}
            return {{ $p.handle }}
            order {{ nearest($p.taste, $vector) }}
            limit 10
        }}
    """,
    "hybrid plus one hop": f"""
        query q($words: String, $vector: {_VECTOR}) {{
            match {{ $p: Person  $p knows $f }}
            return {{ $p.handle, $f.handle }}
            order {{ rrf(nearest($p.taste, $vector), bm25($p.bio, $words)) }}
            limit 10
        }}
    """,
    "hybrid among acquaintances": f"""
        query q($handle: String, $words: String, $vector: {_VECTOR}) {{
            match {{ $me: Person {{ handle: $handle }}  $me knows $p }}
            return {{ $p.handle }}
            order {{ rrf(nearest($p.taste, $vector), bm25($p.bio, $words)) }}
            limit 10
        }}
    """,
    "100k batched lookups": """
        query q($handles: [String]) {
            match { $p: Person  $handles contains $p.handle }
            return { $p.handle, $p.age }
        }
    """,
}


class Ours:
    """An open graph."""

    name = "ours"
    graph: Graph

    def load(self, folder: Path, data: Social) -> None:
        """Make a graph of the data and open it."""
        has_vectors = "taste" in data.people.column_names
        person = f"{_PERSON}  taste: {_VECTOR} @index" if has_vectors else _PERSON
        schema = f"node Person {{ {person} }}\nedge Knows: Person -> Person {{ since: I64 }}"
        self.graph = omnigraph.init(folder / "graph", schema, durability="process")
        self.graph.load({"Person": data.people, "Knows": data.knows}, "append")

    def open(self, folder: Path) -> None:
        """Open the graph that was loaded there."""
        self.graph = omnigraph.open(folder / "graph", durability="process")

    def close(self) -> None:
        """Write what is cached, and let go."""
        self.graph.close()

    def ask(self, question: str, values: Values) -> Callable[[], pa.Table]:
        """Return what gives the answer; only calling it is measured."""
        text = TEXTS[question]
        return lambda: self.graph.query(text, params=values).to_arrow()
