"""The records of a random load as files of every format, tables in memory, and mappings, by its seed."""

import base64
import gzip
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.catalog.model import Catalog
from omnigraph.operations.load.load import LoadInput, RecordInput, TableInput
from omnigraph.validate.columns import Column
from tests.spark.cases import ENDS, Case, Line, Record

NDJSON = ("jsonl", "ndjson", "jsonl.gz", "jsonl.zst")
TYPED = ("csv", "csv.gz", "csv.zst", "parquet", "arrow", "feather")
BAD_COLUMNS = ("no", "src", "mai")


@dataclass(slots=True)
class CaseFiles:
    """What a load is given: names and tables, and a mapping that names more."""

    data: list[str | LoadInput] = field(default_factory=list)
    mapped: list[Record] = field(default_factory=list)

    def mapping(self, folder: Path) -> Path | None:
        """Write the mapping, if there is one; JSON is YAML."""
        if not self.mapped:
            return None
        path = folder / "load.yaml"
        path.write_text(json.dumps({"sources": self.mapped}, indent=1))
        return path


def write_case(case: Case, folder: Path, catalog: Catalog) -> tuple[list[str | LoadInput], Path | None]:
    """Write the records of a case in one to three shares, and return what a load is given of them."""
    rng = random.Random(-1 - case.seed)
    count = rng.choice([1, 1, 2, 3])
    shares: list[list[Line]] = [list(case.lines[number::count]) for number in range(count)]
    made = CaseFiles()
    for number, lines in enumerate(shares):
        place = folder / f"share{number}"
        place.mkdir()
        if rng.random() < 0.4 or any(isinstance(line, bytes) for line in lines):
            _add_ndjson(made, place, lines, rng)
        else:
            _add_typed(made, place, [line for line in lines if isinstance(line, dict)], rng, catalog)
    return made.data, made.mapping(folder)


def _add_ndjson(made: CaseFiles, folder: Path, lines: Sequence[Line], rng: random.Random) -> None:
    """Add NDJSON, with blank lines and both ends of lines; as a file, by its folder, or as it is."""
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    parts = [part for text in texts for part in ([text] if rng.random() < 0.9 else [text, b"", b" "])]
    data = rng.choice([b"\n", b"\r\n"]).join(parts) + rng.choice([b"", b"\n"])
    if rng.random() < 0.1:
        made.data.append(RecordInput(data, folder.name))
        return
    suffix = rng.choice(NDJSON)
    path = folder / f"records.{suffix}"
    _write(path, data)
    made.data.append(str(folder if rng.random() < 0.2 else path))


def _add_typed(
    made: CaseFiles, folder: Path, records: Sequence[Record], rng: random.Random, catalog: Catalog
) -> None:
    """Add a file for each type of the records: by name and type, by its place in a folder, or mapped."""
    by_type: dict[str, list[Record]] = {}
    for record in records:
        by_type.setdefault(record.get("type") or record["edge"], []).append(_flat(record))
    in_folder = rng.random() < 0.3 and bool(by_type)
    for name, rows in by_type.items():
        columns = _columns(rows, rng)
        if rng.random() < 0.04:
            columns[rng.choice(BAD_COLUMNS)] = ["1"] * len(rows)
        if not in_folder and rng.random() < 0.1:
            type_ = catalog.nodes.get(name) or catalog.edges[name]
            made.data.append(TableInput(type_.table_key, _table(columns, rng), name))
            continue
        suffix = rng.choice(TYPED)
        if not in_folder and rng.random() < 0.3:
            entry, columns = _mapped(name, columns, rng)
            path = folder / f"{name.lower()}_rows.{suffix}"
            _write_columns(path, columns, rng)
            made.mapped.append({"path": f"{folder.name}/{path.name}", **entry})
            continue
        path = folder / (f"{name}.{suffix}" if rng.random() < 0.5 else f"{name}/part.{suffix}")
        _write_columns(path, columns, rng)
        if not in_folder:
            made.data.append(f"{name}={path}")
    if in_folder:
        made.data.append(str(folder))


def _flat(record: Record) -> Record:
    ends = {name: record[name] for name in ("from", "to") if name in record}
    return {**record["data"], **ends}


def _columns(rows: Sequence[Record], rng: random.Random) -> dict[str, list[object]]:
    names = sorted({name for row in rows for name in row})
    rng.shuffle(names)
    return {name: [row.get(name) for row in rows] for name in names}


def _mapped(
    name: str, columns: dict[str, list[object]], rng: random.Random
) -> tuple[Record, dict[str, list[object]]]:
    """Return a mapping, and the columns under the names of somebody else's table."""
    entry: Record = {"type": name, "columns": {}}
    renamed: dict[str, list[object]] = {"extra": list(range(len(next(iter(columns.values())))))}
    for column, values in columns.items():
        if column in {"id", "from", "to"}:
            entry[column] = f"c_{column}"
        elif rng.random() < 0.8:
            entry["columns"][column] = f"c_{column}"
        else:
            renamed[column] = values
            continue
        renamed[f"c_{column}"] = values
    if name == "Holds" and rng.random() < 0.7:
        parts = [_key_parts(value) for value in columns["from"]]
        renamed |= {"c": [part[0] for part in parts], "r": [part[1] for part in parts]}
        entry["from"] = {"type": ENDS[name][0], "columns": ["c", "r"]}
    if name == "Person" and "kind" not in columns:
        entry["constants"] = {"kind": "a" if rng.random() < 0.9 else "z"}
    if rng.random() < 0.04:
        entry[rng.choice(["id", "colums"])] = "c_none"
    return entry, renamed


def _key_parts(value: object) -> tuple[object, object]:
    try:
        column, row = json.loads(str(value))
    except ValueError:
        return None, None
    return column, int(row)


def _write_columns(path: Path, columns: dict[str, list[object]], rng: random.Random) -> None:
    path.parent.mkdir(exist_ok=True)
    if ".csv" in path.name:
        _write(path, _csv(columns, rng))
        return
    table = _table(columns, rng)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rng.choice([1, 2, 100]))
        return
    batches = table.to_batches(max_chunksize=rng.choice([1, 2, 100]))
    is_stream = rng.random() < 0.4
    with pa.OSFile(str(path), "wb") as file:
        make = pa.ipc.new_stream if is_stream else pa.ipc.new_file
        with make(file, table.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)


def _csv(columns: dict[str, list[object]], rng: random.Random) -> bytes:
    end = rng.choice(["\n", "\r\n"])
    lines = [",".join(columns)]
    for row in zip(*columns.values(), strict=True):
        lines.append(",".join(_field(value, rng) for value in row))
        if rng.random() < 0.03:
            lines.append(rng.choice(["", "a" + "," * len(columns), 'x"y', '"open"x']))
    return (end.join(lines) + rng.choice(["", end])).encode()


def _field(value: object, rng: random.Random) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    is_quoted = text == "" or any(sign in text for sign in ',"\r\n') or rng.random() < 0.2
    return '"' + text.replace('"', '""') + '"' if is_quoted else text


def _table(columns: dict[str, list[object]], rng: random.Random) -> pa.Table:
    return pa.table({name: _array(name, values, rng) for name, values in columns.items()})


def _array(name: str, values: Sequence[object], rng: random.Random) -> Column:
    """Return a column in one of the types that somebody's table may have it in."""
    typed = _converted(name, values) if rng.random() < 0.5 else None
    given: Any = values if typed is None else typed
    made: Any
    try:
        made = pa.array(given)
    except (pa.ArrowException, OverflowError):
        made = pa.array([None if value is None else str(value) for value in values])
    if pa.types.is_string(made.type):
        others = [pa.utf8(), pa.large_utf8(), pa.dictionary(pa.int32(), pa.utf8())]
        return made.cast(rng.choice(others))
    if pa.types.is_int64(made.type) and rng.random() < 0.3:
        return made.cast(pa.float64(), safe=False)
    return made


def _converted(name: str, values: Sequence[object]) -> list[object] | None:
    """Return dates, moments and bytes in place of their texts, or nothing where one of them is none."""
    readers: dict[str, Callable[[str], object]] = {
        "y": date.fromisoformat,
        "since": date.fromisoformat,
        "at": datetime.fromisoformat,
        "raw": lambda text: base64.b64decode(text.removeprefix("base64:"), validate=True),
    }
    read = readers.get(name)
    if read is None:
        return None
    try:
        return [None if value is None else read(str(value)) for value in values]
    except ValueError:
        return None


def _write(path: Path, data: bytes) -> None:
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = pa.compress(data, codec="zstd", asbytes=True)
    path.write_bytes(data)
