"""The graph of the surfaces specification: craft, missions, and who flew which."""

import atexit
import hashlib
import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from tests.support.commands import write
from tests.support.in_process import document, invoke

ATLAS = """\
node Craft {
    code: String @key
    name: String @index
    mass_kg: F64?
    launched: Date?
}

node Mission {
    title: String @key
}

edge Flew: Craft -> Mission {
    seat: I32?
}
"""
MUTATIONS = """\
query add_craft($code: String, $name: String) {
    insert Craft { code: $code, name: $name }
}

query launch($code: String, $title: String) {
    insert Craft { code: $code, name: $code }
    insert Mission { title: $title }
    insert Flew { from: $code, to: $title }
}

query crew($code: String, $title: String) {
    insert Craft { code: $code, name: $code }
    insert Flew { from: $code, to: $title }
}

query rename($code: String, $name: String) {
    update Craft set { name: $name } where code = $code
}

query retire($code: String) {
    delete Craft where code = $code
}
"""
GRAPH = "g.omni"


def craft(code: str, **data: object) -> dict[str, object]:
    """Return the record of a craft."""
    return {"type": "Craft", "data": {"code": code, "name": code.lower(), **data}}


def mission(title: str) -> dict[str, object]:
    """Return the record of a mission."""
    return {"type": "Mission", "data": {"title": title}}


def flew(code: str, title: str, **data: object) -> dict[str, object]:
    """Return the record of a flight, under an id of its own so that loading it again replaces it."""
    return {"edge": "Flew", "from": code, "to": title, "data": {"id": f"{code} on {title}", **data}}


SEED = (
    craft("VGR-1", mass_kg=825.5, launched="1977-09-05"),
    craft("VGR-2", mass_kg=825.5, launched="1977-08-20"),
    craft("GLL-1"),
    mission("Grand Tour"),
    mission("Jupiter"),
    flew("VGR-1", "Grand Tour"),
    flew("VGR-2", "Grand Tour"),
    flew("GLL-1", "Jupiter"),
)
SEED_ROWS = {"node:Craft": 3, "node:Mission": 2, "edge:Flew": 3}


def lines(*records: Mapping[str, object]) -> str:
    """Return records as NDJSON."""
    return "".join(f"{json.dumps(record)}\n" for record in records)


def place_atlas(folder: Path) -> Path:
    """Put schema, queries, seed and a loaded graph of its own into a folder, and return the graph."""
    shutil.copytree(_made(), folder, dirs_exist_ok=True)
    return folder / GRAPH


@cache
def _made() -> Path:
    """Make the folder that tests copy, once in a process."""
    folder = Path(mkdtemp(prefix="atlas-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write(folder, "atlas.pg", ATLAS)
    write(folder, "atlas.gq", MUTATIONS)
    write(folder, "seed.jsonl", lines(*SEED))
    assert invoke("init", GRAPH, "--schema", "atlas.pg", cwd=folder).code == 0
    loaded = invoke("load", GRAPH, "--data", "seed.jsonl", "--mode", "append", "--as", "act-seed", cwd=folder)
    assert loaded.code == 0, loaded
    return folder


def commits(folder: Path, *arguments: str, graph: str = GRAPH) -> list[dict[str, Any]]:
    """Return the commits of a graph, newest first."""
    found: list[dict[str, Any]] = document("commit", "list", graph, *arguments, cwd=folder)["commits"]
    return found


def head(folder: Path) -> str:
    """Return the id of the newest commit."""
    return str(commits(folder, "--limit", "1")[0]["graph_commit_id"])


def row_counts(folder: Path, graph: str = GRAPH) -> dict[str, int]:
    """Return the rows of every table."""
    tables = document("snapshot", graph, cwd=folder)["tables"]
    return {table["table_key"]: table["row_count"] for table in tables}


def rows(graph: Path, type_name: str) -> list[dict[str, Any]]:
    """Return the rows of a type, as the library reads them."""
    opened: Graph = open_graph(graph, mode="ro")
    with opened:
        return opened.table(type_name).to_pylist()


def digest(folder: Path) -> dict[str, str]:
    """Return every file below a folder with a digest of it, to see whether anything has changed."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
