"""What `--data` may name: files, folders, patterns, standard input, and Parquet of one type."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from tests.support.atlas import GRAPH, SEED_ROWS, craft, flew, lines, mission, place_atlas, row_counts, rows
from tests.support.commands import Outcome, write
from tests.support.in_process import invoke


def load(folder: Path, *names: str, mode: str = "append", stdin: str = "") -> Outcome:
    """Load some inputs."""
    given = [word for name in names for word in ("--data", name)]
    flags = ("--mode", mode, "--engine", "local", "--quiet")
    return invoke("load", GRAPH, *flags, *given, cwd=folder, stdin=stdin)


def parquet(path: Path, **columns: Sequence[object]) -> None:
    """Write a Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)


def test_several_files_are_one_load_and_name_the_file_of_an_error(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "one.jsonl", lines(craft("CAS-1")))
    write(tmp_path, "two.jsonl", lines(mission("Saturn"), flew("CAS-1", "Pluto")))

    refused = load(tmp_path, "one.jsonl", "two.jsonl")
    between = row_counts(tmp_path)
    write(tmp_path, "two.jsonl", lines(mission("Saturn"), flew("CAS-1", "Saturn")))
    loaded = load(tmp_path, "one.jsonl", "two.jsonl")

    assert refused.code == 1
    assert "two.jsonl:2: " in refused.stderr
    assert between == SEED_ROWS
    assert loaded.code == 0
    assert row_counts(tmp_path) == {"node:Craft": 4, "node:Mission": 3, "edge:Flew": 4}


def test_a_folder_stands_for_the_data_below_it(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "data/b/flights.ndjson", lines(flew("CAS-1", "Saturn")))
    write(tmp_path, "data/a.jsonl", lines(craft("CAS-1")))
    write(tmp_path, "data/README.md", "not data")
    write(tmp_path, "data/_temporary/0.jsonl", "not done")
    write(tmp_path, "data/.b.jsonl", "not done")
    parquet(tmp_path / "data" / "Mission.parquet", title=["Saturn"])

    outcome = load(tmp_path, "data")

    assert outcome.code == 0
    assert row_counts(tmp_path) == {"node:Craft": 4, "node:Mission": 3, "edge:Flew": 4}


def test_a_folder_may_hold_every_format_packed_or_not(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "data/Mission.csv", "title\nSaturn\n")
    (tmp_path / "data" / "more.jsonl.gz").write_bytes(gzip.compress(lines(craft("CAS-1")).encode()))
    flights = pa.table({"from": ["CAS-1"], "to": ["Saturn"]})
    pa.feather.write_feather(flights, str(tmp_path / "data" / "Flew.feather"))

    assert load(tmp_path, "data").code == 0
    assert row_counts(tmp_path) == {"node:Craft": 4, "node:Mission": 3, "edge:Flew": 4}


def test_in_a_folder_a_folder_may_name_the_type(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    parquet(tmp_path / "data" / "Mission" / "part-0.parquet", title=["Saturn"])
    parquet(tmp_path / "data" / "Mission" / "part-1.parquet", title=["Neptune"])

    assert load(tmp_path, "data").code == 0
    assert row_counts(tmp_path)["node:Mission"] == 4


def test_a_pattern_stands_for_its_files_in_order(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    write(tmp_path, "day-2.jsonl", lines(flew("VGR-1", "Jupiter", seat=2)))
    write(tmp_path, "day-1.jsonl", lines(flew("VGR-1", "Jupiter", seat=1)))

    outcome = load(tmp_path, "day-*.jsonl", mode="merge")

    assert outcome.code == 0
    assert {row["id"]: row["seat"] for row in rows(graph, "Flew")}["VGR-1 on Jupiter"] == 2


def test_parquet_goes_to_the_type_that_is_named(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    parquet(tmp_path / "c.parquet", code=["CAS-1", "CAS-2"], name=["one", "two"], mass_kg=[1.5, None])
    parquet(tmp_path / "f.parquet", **{"from": ["CAS-1"], "to": ["Jupiter"]})

    outcome = load(tmp_path, "Craft=c.parquet", "flew=f.parquet")

    assert outcome.code == 0
    assert {row["code"]: row["mass_kg"] for row in rows(graph, "Craft")}["CAS-1"] == 1.5
    assert row_counts(tmp_path) == {"node:Craft": 5, "node:Mission": 2, "edge:Flew": 4}


def test_parquet_of_one_type_may_be_a_folder_or_a_pattern(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    parquet(tmp_path / "parts" / "0.parquet", title=["Saturn"])
    parquet(tmp_path / "parts" / "1.parquet", title=["Neptune"])
    parquet(tmp_path / "more-0.parquet", title=["Pluto"])

    assert load(tmp_path, "Mission=parts", "Mission=more-*.parquet").code == 0
    assert row_counts(tmp_path)["node:Mission"] == 5


def test_a_file_whose_name_looks_like_a_type_and_a_path_is_a_file(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "Craft=new.jsonl", lines(craft("CAS-1")))

    assert load(tmp_path, "Craft=new.jsonl").code == 0
    assert row_counts(tmp_path)["node:Craft"] == 4


def test_a_mapping_says_what_the_columns_of_a_table_mean(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    write(tmp_path, "crm/craft.csv", "nr,label,owner\nCAS-1,one,x\n")
    write(
        tmp_path,
        "crm/load.yaml",
        "sources: [{path: craft.csv, type: Craft, columns: {code: nr, name: label}}]",
    )
    flags = ("--mapping", "crm/load.yaml", "--mode", "append")

    loaded = invoke("load", GRAPH, *flags, cwd=tmp_path)
    again = invoke("load", GRAPH, *flags, cwd=tmp_path)

    assert loaded.code == 0
    assert {row["code"]: row["name"] for row in rows(graph, "Craft")}["CAS-1"] == "one"
    assert again.code == 1
    assert "craft.csv:2" in again.stderr


def test_standard_input_may_stand_beside_files(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "one.jsonl", lines(craft("CAS-1")))

    refused = load(tmp_path, "one.jsonl", "-", stdin="{]")
    loaded = load(tmp_path, "one.jsonl", "-", stdin=lines(mission("Saturn")))

    assert "<stdin>:1: " in refused.stderr
    assert loaded.code == 0
    assert row_counts(tmp_path) == SEED_ROWS | {"node:Craft": 4, "node:Mission": 3}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.jsonl", "cannot read missing.jsonl: No such file or directory"),
        ("empty", "no data in empty: data files end in .jsonl, .ndjson, .csv, .parquet, .arrow, .feather"),
        ("nothing-*.jsonl", "no file matches nothing-*.jsonl"),
        ("c.parquet", "c.parquet holds rows of one type: say which, as in c=c.parquet"),
        ("Crafft=c.parquet", "unknown type 'Crafft'"),
        ("Craft=missing.parquet", "cannot read missing.parquet: No such file or directory"),
        ("Craft=seed.jsonl", "seed.jsonl has records that name their types: give it without 'Craft='"),
        ("Craft=notes", "cannot read notes as Parquet"),
        ("strange", "unknown type 'strange'"),
        ("Craft=wide.parquet", "colour"),
    ],
)
def test_what_cannot_be_taken_is_refused(name: str, said: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)
    (tmp_path / "empty").mkdir()
    write(tmp_path, "notes", "no table")
    parquet(tmp_path / "c.parquet", code=["CAS-1"], name=["one"])
    parquet(tmp_path / "strange" / "x.parquet", code=["CAS-1"])
    parquet(tmp_path / "wide.parquet", code=["CAS-1"], name=["one"], colour=["red"])

    outcome = load(tmp_path, name)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert said in outcome.stderr
    assert row_counts(tmp_path) == SEED_ROWS
