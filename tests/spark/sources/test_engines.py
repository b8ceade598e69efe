"""Every format through both engines: the same graph, and the same violations in the same order."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.core.errors import ValidationError
from omnigraph.validate.violations import Violation
from tests.support.seam import patched
from tests.support.spark import spark_session

if TYPE_CHECKING:
    from omnigraph.operations.engine import Engine

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    note: String?
}

edge Knows: Person -> Person {
    since: Date?
}
"""
PEOPLE = 60
MAPPING = """\
sources:
  - path: crm.csv
    type: Person
    columns: {name: login}
    constants: {note: crm}
  - path: friends.csv
    type: Knows
    from: a
    to: b
"""


def place(folder: Path, *, is_right: bool) -> None:
    """Write the same people in every format, and edges between them; or with a mistake in every file."""
    wrong = "" if is_right else "x"
    data = folder / "data"
    data.mkdir()
    records = [{"type": "Person", "data": {"name": f"j{n}", "age": n}} for n in range(PEOPLE)]
    lines = [json.dumps(record) for record in records]
    lines[7:7] = [] if is_right else ["{]", '{"type": "Person", "data": {"nam": "x"}}']
    (data / "a.jsonl").write_text("\r\n".join(lines))
    (data / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).replace('"j', '"g').encode()))
    rows = [f'c{n},{n}{wrong if n == 9 else ""},"note\n{n}"' for n in range(PEOPLE)]
    (data / "Person").mkdir()
    (data / "Person" / "c.csv").write_text("name,age,note\n" + "\n\n".join(rows))
    names = [f"p{n}" for n in range(PEOPLE)]
    pq.write_table(pa.table({"name": names}), data / "Person" / "d.parquet", row_group_size=7)
    ends = {"from": names, "to": [f"c{n}" if is_right else f"q{n}" for n in range(PEOPLE)]}
    pq.write_table(pa.table(ends), data / "Knows.parquet", row_group_size=7)
    (folder / "crm.csv").write_text("login,age,extra\nm1,1,x\nm2,2,y\n")
    (folder / "friends.csv").write_text(f"a,b\nm1,m2\nm2,j{wrong}1\n")
    (folder / "load.yaml").write_text(MAPPING)


def load(folder: Path, engine: Engine) -> list[object]:
    """Load folder and mapping into a new graph and return what it holds, but for ids that were made."""
    path = folder / f"{engine}.omni"
    with omnigraph.init(path, SCHEMA, durability="process") as graph:
        mapping = folder / "load.yaml"
        result = graph.load(folder / "data", "append", mapping=mapping, engine=engine, index=False)
        people = graph.table("Person").to_pylist()
        knows = graph.table("Knows").drop_columns(["id"]).sort_by([("src", "ascending")]).to_pylist()
    return [sorted(result.tables), people, knows]


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file be cut into several slices."""
    patched(monkeypatch, "omnigraph.operations.load.spark.SLICE_BYTES_MIN", 300)
    patched(monkeypatch, "omnigraph.operations.load.spark.SLICE_BYTES_MAX", 300)
    spark_session()


def test_a_folder_of_all_formats_and_a_mapping_make_the_same_graph(tmp_path: Path) -> None:
    place(tmp_path, is_right=True)

    local = load(tmp_path, "local")

    assert local[0] == [("edge:Knows", PEOPLE + 2), ("node:Person", 4 * PEOPLE + 2)]
    assert load(tmp_path, "spark") == local


def test_mistakes_in_every_file_are_told_in_the_same_order(tmp_path: Path) -> None:
    place(tmp_path, is_right=False)
    told: dict[str, tuple[str, int, list[tuple[str | None, int, str]]]] = {}

    for engine in ("local", "spark"):
        with pytest.raises(ValidationError) as caught:
            load(tmp_path, engine)
        found = [item for item in caught.value.violations if isinstance(item, Violation)]
        places = [(item.file_name, item.line, item.message) for item in found]
        told[engine] = (str(caught.value), caught.value.total, places)

    assert told["spark"] == told["local"]
    assert told["local"][1] == PEOPLE + 6
    assert {Path(name or "").name for name, _, _ in told["local"][2]} == {
        "Knows.parquet",
        "c.csv",
        "a.jsonl",
        "b.jsonl.gz",
        "friends.csv",
    }
