"""Mapping files: a user's tables as types, without rewriting them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk.sources.mapping_file import read_mapping
from omnigraph.bulk.sources.sources import read_source
from omnigraph.catalog.build import compile_schema
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.validate.violations import ViolationLog
from tests.support.pages import DOCS, blocks

SCHEMA = """\
node Person {
    @key(first, last)
    first: String
    last: String
    age: I32?
}

node City {
    code: I64 @key
    name: String?
}

node Note {
    text: String
}

edge Lives: Person -> City {
    since: Date?
    source: String
}
"""
CATALOG = compile_schema(Source(SCHEMA))
MAPPING = """\
sources:
  - path: people/*.parquet
    type: Person
    key: [given_name, family_name]
    columns: {age: years}
  - path: cities.csv
    type: City
    columns: {code: nr}
  - path: lives.csv
    type: lives
    from: {type: Person, columns: [a, b]}
    to: city
    columns: {since: started}
    constants: {source: crm}
  - path: notes.csv
    type: Note
    id: nr
  - path: more.jsonl
"""


def place(folder: Path) -> Path:
    """Write tables as a user has them, and the mapping."""
    (folder / "people").mkdir()
    for number, (given, family, years) in enumerate([("Ann", "Lee", 30), ("Bo", "Ray", None)]):
        table = pa.table(
            {
                "given_name": [given],
                "family_name": [family],
                "years": pa.array([years], pa.int64()),
                "secret": ["x"],
            }
        )
        pq.write_table(table, folder / "people" / f"{number}.parquet")
    (folder / "cities.csv").write_text("nr,name,mayor\n7,Ulm,x\n8,Bonn,y\n")
    (folder / "lives.csv").write_text("a,b,city,started\nAnn,Lee,7,2020-01-01\nBo,Ray,8,\n")
    (folder / "notes.csv").write_text("nr,text\nn1,hello\n")
    (folder / "more.jsonl").write_text('{"type": "Note", "data": {"text": "a record"}}\n')
    (folder / "load.yaml").write_text(MAPPING)
    return folder / "load.yaml"


def read_all(mapping: Path) -> None:
    """Read every file of a mapping to its end."""
    for source in read_mapping(mapping, CATALOG):
        list(read_source(source, CATALOG, make_id=lambda: "made", log=ViolationLog()))


def test_tables_with_columns_of_their_own_become_a_graph(tmp_path: Path) -> None:
    mapping = place(tmp_path)
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA, durability="process")

    graph.load([], "append", mapping=mapping, engine="local", index=False)

    people = graph.table("Person").to_pylist()
    assert [(row["first"], row["last"], row["age"]) for row in people] == [
        ("Ann", "Lee", 30),
        ("Bo", "Ray", None),
    ]
    assert graph.table("City").to_pylist() == [
        {"id": "7", "code": 7, "name": "Ulm"},
        {"id": "8", "code": 8, "name": "Bonn"},
    ]
    lives = sorted(graph.table("Lives").to_pylist(), key=lambda row: row["dst"])
    assert [(row["src"], row["dst"], row["source"]) for row in lives] == [
        ('["Ann","Lee"]', "7", "crm"),
        ('["Bo","Ray"]', "8", "crm"),
    ]
    assert sorted(row["text"] for row in graph.table("Note").to_pylist()) == ["a record", "hello"]
    assert "n1" in graph.table("Note")["id"].to_pylist()


AREAS = """\
node Area {
    @key(zone, area)
    zone: String
    area: String
}

edge Borders: Area -> Area
"""


@pytest.mark.case("surfaces", 229)
@pytest.mark.parametrize(
    ("key", "ends"),
    [
        ("[z, a]", ("{columns: [z, a]}", "{columns: [z2, a2]}")),
        (
            "{area: a, zone: z}",
            ("{columns: {area: a, zone: z}}", "{type: Area, columns: {zone: z2, area: a2}}"),
        ),
        ("[z, a]", ("[z, a]", "[z2, a2]")),
        ("{zone: z, area: a}", ("{zone: z, area: a}", "{area: a2, zone: z2}")),
    ],
)
def test_parts_of_a_key_are_taken_as_the_schema_writes_it_or_by_name(
    key: str, ends: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "areas.csv").write_text("z,a\nZ1,A1\nZ2,A2\n")
    (tmp_path / "borders.csv").write_text("z,a,z2,a2\nZ1,A1,Z2,A2\n")
    (tmp_path / "load.yaml").write_text(
        f"sources: [{{path: areas.csv, type: Area, key: {key}}}, "
        f"{{path: borders.csv, type: Borders, from: {ends[0]}, to: {ends[1]}}}]"
    )
    omnigraph.init(tmp_path / "g.omni", AREAS, durability="process").close()
    graph = omnigraph.open(tmp_path / "g.omni")

    graph.load([], "append", mapping=tmp_path / "load.yaml", engine="local", index=False)

    assert graph.table("Area").to_pylist() == [
        {"id": '["A1","Z1"]', "area": "A1", "zone": "Z1"},
        {"id": '["A2","Z2"]', "area": "A2", "zone": "Z2"},
    ]
    (border,) = graph.table("Borders").to_pylist()
    assert (border["src"], border["dst"]) == ('["A1","Z1"]', '["A2","Z2"]')


@pytest.mark.parametrize(
    "key", ["{zone: z}", "{zone: z, aera: a}", "{zone: z, area: [a]}", "[z, a, z]", "z", "7"]
)
def test_a_key_without_a_column_for_each_part_is_refused(key: str, tmp_path: Path) -> None:
    (tmp_path / "areas.csv").write_text("z,a\nZ1,A1\n")
    (tmp_path / "load.yaml").write_text(f"sources: [{{path: areas.csv, type: Area, key: {key}}}]")

    with pytest.raises(BadRequest, match="one column for each part of the key of Area: zone, area"):
        list(read_mapping(tmp_path / "load.yaml", compile_schema(Source(AREAS))))


def test_a_number_in_place_of_an_id_is_the_key(tmp_path: Path) -> None:
    (tmp_path / "load.yaml").write_text(
        "sources: [{path: l.parquet, type: Lives, from: who, to: city, constants: {source: x}}]"
    )
    pq.write_table(pa.table({"who": ['["A","B"]'], "city": [7]}), tmp_path / "l.parquet")
    (source,) = read_mapping(tmp_path / "load.yaml", CATALOG)

    _, rows = read_source(source, CATALOG, make_id=lambda: "made", log=ViolationLog())

    assert rows.table.select(["src", "dst"]).to_pylist() == [{"src": '["A","B"]', "dst": "7"}]


def test_parts_of_a_key_that_do_not_fit_are_refused_at_their_row(tmp_path: Path) -> None:
    mapping = place(tmp_path)
    mapping.write_text(
        "sources: [{path: lives.csv, type: Lives, from: {columns: [a, b]}, to: {columns: city}, "
        "constants: {source: x}}]"
    )
    (tmp_path / "lives.csv").write_text("a,b,city\nAnn,Lee,x\nAnn,Lee,7\n,Lee,7\n")
    (source,) = read_mapping(mapping, CATALOG)
    log = ViolationLog()

    rows = list(read_source(source, CATALOG, make_id=lambda: "made", log=log))

    assert sum(found.count for found in rows) == 1
    assert [(found.line, found.message) for found in log.first_violations()] == [
        (2, "'to' of Lives: City.code: expected I64, got string 'x'"),
        (4, "'from' of Lives is missing"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("sources:", "source:", "unknown member 'source'; did you mean 'sources'?"),
        ("type: City", "typ: City", "source 2: unknown member 'typ'; did you mean 'type'?"),
        ("type: City", "type: Ciity", "source 2: unknown type 'Ciity'; did you mean 'City'?"),
        ("{code: nr}", "{cod: nr}", "source 2: City has no property 'cod'; did you mean 'code'?"),
        ("{code: nr}", "{code: nrr}", r"cities\.csv has no column 'nrr'; did you mean 'nr'?"),
        ("{code: nr}", "{code: 7}", "source 2: the column of 'code' must be a name"),
        ("{code: nr}", "[nr]", "source 2: 'columns' must be an object keyed by property"),
        ("type: Person,", "type: City,", "source 3: 'from': this end is a Person, not a City"),
        ("[a, b]", "[a]", "needs one column for each part of the key of Person: first, last"),
        ("key: [given_name, family_name]", "key: given_name", "'key' needs one column for each part"),
        ("path: notes.csv", "path: nothing-*.csv", "no file matches"),
        ("path: notes.csv", "path: 7", "source 4: 'path' must be a text"),
        ("id: nr", "from: nr", "source 4: unknown member 'from'"),
        ("{source: crm}", "{source: crm, since: 2020-01-01}", "'since' has both a column and a constant"),
        ("{source: crm}", "{source: 7}", "source 3: Lives.source: expected String, got number"),
        ("path: more.jsonl", "path: more.jsonl\n    id: x", "source 5: 'id' needs a 'type'"),
        ("path: more.jsonl", "path: more.jsonl\n    type: Note", "records that name their types"),
        ("sources:", "sources: [", r"load\.yaml:"),
        ("sources:", "sources: []\nother:", "unknown member 'other'"),
        ("sources:", "sources: {}\n#", r"load\.yaml:3: "),
    ],
)
def test_what_does_not_exist_is_refused_with_the_nearest_name(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    mapping = place(tmp_path)
    mapping.write_text(MAPPING.replace(before, after, 1))

    with pytest.raises(BadRequest, match=said.replace("?", r"\?")):
        read_all(mapping)


def test_a_mapping_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="No such file"):
        list(read_mapping(tmp_path / "load.yaml", CATALOG))


def test_the_mapping_of_the_guide_fits_its_schema(tmp_path: Path) -> None:
    guide = DOCS / "guide"
    (schema,) = [block.text for block in blocks(guide / "writing-data.md") if block.language == "pg"]
    (text,) = [block.text for block in blocks(guide / "files-and-tables.md") if block.language == "yaml"]
    (tmp_path / "crm" / "people").mkdir(parents=True)
    people = pa.table({"user_name": ["ada"], "full_name": ["Ada Quill"]})
    pq.write_table(people, tmp_path / "crm" / "people" / "0.parquet")
    (tmp_path / "shows.csv").write_text("show_code,title\nNITE,Night Owls\n")
    (tmp_path / "rota.csv").write_text("presenter,show_code,first_aired\nada,NITE,2019-04-01\n")
    (tmp_path / "extra.jsonl").write_text("")
    (tmp_path / "load.yaml").write_text(text)
    graph = omnigraph.init(tmp_path / "radio.omni", schema, durability="process")

    result = graph.load([], "merge", mapping=tmp_path / "load.yaml", engine="local", index=False)

    assert dict(result.tables) == {"node:Person": 1, "node:Show": 1, "edge:Hosts": 1}
