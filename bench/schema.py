"""Changes of a schema at two sizes of a table: what they take, and whether they write any data file.

Both graphs take turns step by step, so that a busy moment of the machine meets both.

    python bench/schema.py --sizes 10000 3000000
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.report import verdict
from omnigraph.graph.graph import Graph

PROPERTIES = {"key": "String @key", "value": "I64", "label": "String?", "state": "enum(open, done)?"}
LOAD_ROWS = 500_000  # rows of one load
SIZE_BAR = 1.3
STEPS = ("add a property", "rename a property", "extend an enum", "drop a property")


def main() -> None:
    """Load the tables, change their schemas in turns, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs=2, default=[10_000, 3_000_000], help="rows of the tables")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--durability", choices=["full", "process"], default="full")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder, ExitStack() as held:
        graphs = {}
        for rows in options.sizes:
            root = Path(folder, str(rows))
            graphs[rows] = held.enter_context(build(root, rows, options.durability))
            print(f"loaded {rows} rows", flush=True)
        took = measure(graphs, options.rounds)
    small, large = options.sizes
    print(f"\nchanges of a schema, durability {options.durability}, medians of {options.rounds}")
    print(f"  {'step':<20} {small:>12} rows {large:>12} rows   ratio, of the processor")
    for step in STEPS:
        wall = {rows: median(wall for wall, _ in took[rows, step]) for rows in graphs}
        cpu = {rows: median(cpu for _, cpu in took[rows, step]) for rows in graphs}
        ratio = f"{verdict(wall[large] / wall[small], SIZE_BAR)}, {cpu[large] / cpu[small]:.2f}x"
        print(f"  {step:<20} {wall[small]:>14.1f} ms {wall[large]:>14.1f} ms   {ratio}")


def build(root: Path, rows: int, durability: str) -> Graph:
    """Return a graph with one indexed table."""
    graph = omnigraph.init(root, schema(PROPERTIES), durability=durability)
    for start in range(0, rows, LOAD_ROWS):
        numbers = np.arange(start, min(start + LOAD_ROWS, rows))
        keys = pa.array(numbers)
        items = pa.table({"key": keys.cast(pa.utf8()), "value": keys})
        graph.load({"Item": items}, "append", index=start + LOAD_ROWS >= rows)
    return graph


def schema(properties: dict[str, str]) -> str:
    """Return the text of a schema with one type."""
    lines = "\n".join(f"    {name}: {type_}" for name, type_ in properties.items())
    return f"node Item {{\n{lines}\n}}\n"


def measure(graphs: dict[int, Graph], rounds: int) -> dict[tuple[int, str], list[tuple[float, float]]]:
    """Take every step so often on each graph, in turns; a step that writes a data file is an error."""
    took: dict[tuple[int, str], list[tuple[float, float]]] = {(r, s): [] for r in graphs for s in STEPS}
    for number in range(rounds + 1):
        for step, text in changes(number):
            for rows, graph in graphs.items():
                before, began, cpu = data_files(graph), perf_counter(), process_time()
                graph.apply_schema(text, index=False)
                spent = (perf_counter() - began) * 1_000, (process_time() - cpu) * 1_000
                assert data_files(graph) == before, f"{step} wrote a data file"
                if number:  # the first round warms up
                    took[rows, step].append(spent)
    return took


def changes(number: int) -> Iterator[tuple[str, str]]:
    """Yield the steps of one round, each with the schema that it leads to."""
    values = ["open", "done", *(f"v{n}" for n in range(number))]
    properties = dict(PROPERTIES, state=f"enum({', '.join(values)})?")
    yield "add a property", schema(properties | {"more": "String?"})
    yield "rename a property", schema(properties | {"extra": 'String? @rename_from("more")'})
    properties["state"] = f"enum({', '.join([*values, f'v{number}'])})?"
    yield "extend an enum", schema(properties | {"extra": "String?"})
    yield "drop a property", schema(properties)


def data_files(graph: Graph) -> set[str]:
    """Return the data files of all tables."""
    return {str(path) for path in Path(graph.uri, "nodes").rglob("*.lance") if path.parent.name == "data"}


if __name__ == "__main__":
    main()
