"""Cases 114, 116 and 358 of engine.md: the strict reader, given ids, and who is charged."""

import json
from collections.abc import Mapping

import pytest

from omnigraph.core.errors import ResourceLimit, ValidationError
from omnigraph.core.ids import new_ulid
from omnigraph.validate.columns import TypedRows
from omnigraph.validate.records import UNLIMITED, ReadLimits, read_ndjson
from omnigraph.validate.violations import NOWHERE, ViolationLog
from tests.support.library import catalog
from tests.unit.validate.memory_view import change, committed, removal, rows_of, run

GOOD = '{"type": "Author", "data": {"handle": "ann", "name": "Ann"}}'
EDGE = '{"edge": "Wrote", "from": "ann", "to": "AB-1", "data": %s}'


def read(text: str | bytes, log: ViolationLog, limits: ReadLimits = UNLIMITED) -> dict[str, TypedRows]:
    """Return the rows of one file."""
    data = text.encode() if isinstance(text, str) else text
    return read_ndjson(
        data, file=0, file_name="in.ndjson", catalog=catalog(), make_id=new_ulid, log=log, limits=limits
    )


def refusal(line: str | bytes) -> ValidationError:
    """Return the error of a bad third line between good ones."""
    bad = line.encode() if isinstance(line, str) else line
    log = ViolationLog()
    rows = read(b"\n".join([GOOD.encode(), b"", bad, GOOD.encode()]), log)
    assert rows["node:Author"].lines.tolist() == [1, 4]
    with pytest.raises(ValidationError) as caught:
        log.raise_if_any()
    assert caught.value.total == 1
    return caught.value


@pytest.mark.case("engine", 114)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"type": "Author"', "invalid JSON"),
        ("// a comment", "invalid JSON"),
        (b'{"type": "Author", "data": {"name": "\xff"}}', "invalid UTF-8"),
        ('["Author"]', "a record must be an object, not array"),
        ("null", "a record must be an object, not null"),
        ('{"type": "Author", "type": "Author"}', "member 'type' appears twice"),
        ('{"type": "Author", "data": {"name": "a", "n\\u0061me": "b"}}', "member 'name' appears twice"),
        ('{"type": "Book", "data": {"tags": [{"x": 1, "x": 2}]}}', "member 'x' appears twice"),
        ('{"type": "Author", "edge": "Wrote"}', "'type' or 'edge', not both"),
        ('{"data": {}}', "a record needs 'type' or 'edge'"),
        ("{}", "a record needs 'type' or 'edge'"),
        ('{"type": "Author", "date": {}}', "unknown member 'date'"),
        ('{"type": "Author", "from": "a"}', "unknown member 'from'"),
        ('{"edge": "Wrote", "from": "a", "to": "b", "id": "e"}', "unknown member 'id'"),
        ('{"edge": "Wrote", "from": "a"}', "'to' of an edge"),
        ('{"edge": "Wrote", "from": 1, "to": "b"}', "'from' of an edge"),
        ('{"type": 1}', "'type' must be a string, not number"),
        ('{"edge": null, "from": "a", "to": "b"}', "'edge' must be a string, not null"),
        ('{"type": "Author", "data": null}', "'data' must be an object, not null"),
        ('{"type": "Author", "data": [1]}', "'data' must be an object, not array"),
        ('{"type": "Authors"}', "unknown node type 'Authors'; did you mean 'Author'?"),
        ('{"type": "author"}', "unknown node type 'author'; did you mean 'Author'?"),
        ('{"edge": "Wrotes", "from": "a", "to": "b"}', "unknown edge type 'Wrotes'; did you mean 'Wrote'?"),
        ('{"type": "Author", "data": {"nmae": "x"}}', "Author has no property 'nmae'; did you mean 'name'?"),
        (EDGE % '{"src": "a"}', "'src' is not a property of Wrote"),
        (EDGE % '{"dst": "a"}', "'dst' is not a property of Wrote"),
        (EDGE % '{"from": "a"}', "'from' is not a property of Wrote"),
        ('{"type": "Author", "data": {"_rowid": 1}}', "'_rowid' is a reserved name"),
        ('{"type": "Author", "data": {"_row_created_at_version": 1}}', "is a reserved name"),
        ('{"type": "Note", "data": {"id": 5}}', "'id' must be a string, not number"),
        ('{"type": "Note", "data": {"id": null}}', "'id' must be a string, not null"),
    ],
)
def test_the_strict_reader_refuses_a_line_by_its_number(line: str | bytes, words: str) -> None:
    error = refusal(line)

    assert (error.kind, error.file, error.line) == ("record", "in.ndjson", 3)
    assert str(error).startswith("execution error: in.ndjson:3: ")
    assert words in str(error)


@pytest.mark.case("engine", 114)
def test_a_value_over_several_lines_is_no_record() -> None:
    log = ViolationLog()

    assert read('{"type":\n"Author"}\n' + GOOD, log)["node:Author"].lines.tolist() == [3]

    assert [(item.kind, item.line) for item in log.first_violations()] == [("record", 1), ("record", 2)]


@pytest.mark.case("engine", 114)
def test_lines_have_no_limit_unless_one_is_set() -> None:
    name = "x" * 100_000
    long = json.dumps({"type": "Author", "data": {"handle": "a", "name": name}})
    busy = json.dumps({"type": "Book", "data": {"code": "AB-1", "tags": ["t"] * 10_000}})
    log = ViolationLog()

    found = read(f"{long}\n{busy}", log)

    assert log.total == 0
    assert {key: rows.count for key, rows in found.items()} == {"node:Author": 1, "node:Book": 1}


@pytest.mark.case("engine", 114)
@pytest.mark.parametrize(
    ("limits", "line", "resource", "limit", "actual"),
    [
        (ReadLimits(line_bytes_max=61), GOOD + "  ", "bytes of in.ndjson:2", 61, 62),
        (ReadLimits(line_tokens_max=7), EDGE % "{}", "structural tokens of in.ndjson:2", 7, 11),
    ],
)
def test_a_limit_that_is_set_names_the_line(
    limits: ReadLimits, line: str, resource: str, limit: int, actual: int
) -> None:
    log = ViolationLog()

    assert read(f"{GOOD}\r\n", log, ReadLimits(line_bytes_max=60))["node:Author"].count == 1
    with pytest.raises(ResourceLimit) as caught:
        read(f'{{"type": "Note"}}\n{line}', log, limits)

    assert (caught.value.resource, caught.value.limit, caught.value.actual) == (resource, limit, actual)
    assert log.total == 0


@pytest.mark.case("engine", 116)
@pytest.mark.parametrize(
    ("type_name", "data", "derived"),
    [
        ("Author", {"handle": "ann", "name": "A"}, "ann"),
        ("Shelf", {"room": "north", "slot": 1}, '["north","1"]'),
    ],
)
def test_a_given_id_of_a_keyed_node_is_the_derived_one(
    type_name: str, data: Mapping[str, object], derived: str
) -> None:
    log = ViolationLog()
    right = json.dumps({"type": type_name, "data": {**data, "id": derived}})
    wrong = json.dumps({"type": type_name, "data": {**data, "id": "other"}})

    rows = read(f"{right}\n{wrong}", log)[f"node:{type_name}"]

    assert rows.ids.to_pylist() == [derived]
    with pytest.raises(ValidationError, match=r"in\.ndjson:2: .*'other'") as caught:
        log.raise_if_any()
    assert (caught.value.kind, caught.value.total) == ("record", 1)


@pytest.mark.case("engine", 116)
def test_a_given_id_of_another_entity_is_used_and_otherwise_one_is_made() -> None:
    log = ViolationLog()
    given = '{"type": "Note", "data": {"id": "n1", "body": "b"}}\n{"type": "Note", "data": {"body": "b"}}'

    ids = read(given, log)["node:Note"].ids.to_pylist()

    assert log.total == 0
    assert ids[0] == "n1"
    assert len(str(ids[1])) == 26


@pytest.mark.case("engine", 358)
def test_who_is_charged_and_in_which_order() -> None:
    book = {"title": "T", "price": 1.0, "format": "paper", "added": 0}
    view = committed(
        rows_of("Book", {"code": "AB-1", **book}, {"code": "AB-2", **book}),
        rows_of("Shelf", {"room": "r", "slot": 1}),
        rows_of("Author", {"handle": "ann", "name": "A"}),
        rows_of("Note", {"id": "n1", "body": "b"}),
        rows_of("Mentors", {"id": "m1", "src": "ann", "dst": "ann"}),
        rows_of("About", {"id": "a1", "src": "n1", "dst": "AB-1"}),
    )
    shelf = '["r","1"]'
    stored = [
        {"id": "s1", "src": "AB-1", "dst": shelf},
        {"id": "s2", "src": "AB-1", "dst": shelf},
        {"id": "s3", "src": "AB-1", "dst": shelf},
    ]
    authors = [
        {"handle": "bob", "name": "B", "email": "x"},
        {"handle": "cid", "name": "C", "email": "x"},
    ]
    log = ViolationLog()

    run(
        view,
        [
            removal("About", "a1"),
            change(rows_of("Author", *authors, lines=[4, 9]), removed=["ann"]),
            change(rows_of("StoredOn", *stored, lines=[2, 5, 6])),
        ],
        log,
    )

    assert [(item.line, str(item.kind), item.table_key, item.row_id) for item in log.first_violations()] == [
        (5, "cardinality", "edge:StoredOn", "s2"),
        (9, "unique", "node:Author", "cid"),
        (NOWHERE, "cardinality", "edge:About", "n1"),
        (NOWHERE, "endpoint", "edge:Mentors", "m1"),
        (NOWHERE, "endpoint", "edge:Mentors", "m1"),
    ]
