"""The strict reader: rows out of lines, and what is read fast is read right."""

import json
import sys
from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.model import Catalog
from omnigraph.core.errors import ResourceLimit
from omnigraph.validate.columns import TypedRows
from omnigraph.validate.records import ReadLimits, read_ndjson
from omnigraph.validate.values import check_values
from omnigraph.validate.violations import ViolationLog
from tests.support.library import catalog, compile_text
from tests.support.seam import patched
from tests.unit.validate.memory_view import messages

Option = int | ReadLimits | Catalog


def read(
    data: bytes | Iterable[bytes], log: ViolationLog | None = None, **options: Option
) -> dict[str, TypedRows]:
    """Return the rows of a file of LIB; generated ids are 1, 2, 3."""
    ids = count(1)
    log = ViolationLog() if log is None else log
    defaults: dict[str, Any] = {"file": 0, "file_name": None, "catalog": catalog()}
    found = read_ndjson(data, make_id=lambda: str(next(ids)), log=log, **(defaults | options))
    if log.total == 0:
        for rows in found.values():
            assert rows.flaws == {}
    return found


def lines(*documents: object) -> bytes:
    """Return documents as lines of JSON."""
    return b"\n".join(json.dumps(document).encode() for document in documents)


def refusals(data: bytes) -> list[tuple[int, str, str]]:
    """Return line, kind and message of what is refused."""
    log = ViolationLog()
    read(data, log)
    return messages(log.first_violations())


AUTHOR = {"type": "Author", "data": {"handle": "ann", "name": "Ann"}}
MENTORS = {"edge": "Mentors", "from": "ann", "to": "bob"}


def test_records_of_several_types_become_rows_by_table() -> None:
    found = read(lines(AUTHOR, MENTORS, {"type": "Note", "data": {"body": "b"}}, AUTHOR))

    assert sorted(found) == ["edge:Mentors", "node:Author", "node:Note"]
    authors = found["node:Author"]
    assert (
        authors.table.to_pylist()
        == [{"id": "ann", "born": None, "email": None, "handle": "ann", "name": "Ann"}] * 2
    )
    assert authors.lines.tolist() == [1, 4]
    assert authors.files.tolist() == [0, 0]
    assert found["edge:Mentors"].table.to_pylist() == [{"id": "1", "src": "ann", "dst": "bob", "since": None}]


def test_the_rows_carry_their_file_and_count_from_the_line_given() -> None:
    rows = read(lines(AUTHOR), file=3, first_line=10)["node:Author"]

    assert (rows.files.tolist(), rows.lines.tolist()) == ([3], [10])


def test_an_input_without_records_has_no_tables() -> None:
    assert read(b"") == {}
    assert read(b"\n \t\r\n\r\n") == {}
    assert read([]) == {}


def test_blank_lines_and_carriage_returns_are_counted_but_not_read() -> None:
    data = b"\n" + lines(AUTHOR) + b"\r\n  \r\n" + lines(AUTHOR) + b"\r\n"

    assert read(data)["node:Author"].lines.tolist() == [2, 4]


@pytest.mark.case("surfaces", 519)
@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \n", b"\t \r\n"])
def test_blank_lines_without_number_are_not_parsed(blank: bytes) -> None:
    many = 10_000
    refusals: list[str] = []

    def note(_frame: object, event: str, call: object) -> None:
        if event == "c_exception":
            refusals.append(repr(call))

    sys.setprofile(note)
    try:
        rows = read([blank * many, lines(AUTHOR), b"\n" + blank * many], limits=ReadLimits(line_bytes_max=99))
    finally:
        sys.setprofile(None)

    assert rows["node:Author"].lines.tolist() == [many + 1]
    assert not refusals
    with pytest.raises(ResourceLimit, match=r"bytes of line 2: 100 over 99"):
        read(b"\n" + b" " * 100 + b"\n", limits=ReadLimits(line_bytes_max=99))


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_stream_may_be_cut_anywhere(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.validate.records.BLOCK_BYTES", 50)
    data = lines(*({"type": "Note", "data": {"body": f"é{number}"}} for number in range(9)))

    rows = read(data[start : start + size] for start in range(0, len(data), size))["node:Note"]

    assert rows.table["body"].to_pylist() == [f"é{number}" for number in range(9)]
    assert rows.lines.tolist() == list(range(1, 10))
    assert rows.ids.to_pylist() == [str(number) for number in range(1, 10)]


def test_blocks_without_and_with_ids_and_flaws_make_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.validate.records.BLOCK_BYTES", 10)
    log = ViolationLog()

    rows = read(
        lines(
            {"type": "Note", "data": {"body": "a"}},
            {"type": "Note", "data": {"body": 1}},
            {"type": "Note", "data": {"body": "c", "id": "x"}},
        ),
        log,
    )["node:Note"]

    assert rows.ids.to_pylist() == ["1", "2", "x"]
    assert rows.flaws["body"].tolist() == [False, True, False]
    assert not rows.has_fresh_ids
    assert messages(log.first_violations()) == [(2, "type", "Note.body: expected String, got number")]


def test_ids_are_fresh_only_when_none_was_given() -> None:
    note = {"type": "Note", "data": {"body": "a"}}

    assert read(lines(note))["node:Note"].has_fresh_ids
    assert not read(lines(note, {"type": "Note", "data": {"id": "x", "body": "a"}}))[
        "node:Note"
    ].has_fresh_ids
    assert not read(lines(AUTHOR))["node:Author"].has_fresh_ids


def test_edges_match_in_any_case_and_are_one_table() -> None:
    found = read(lines(MENTORS, MENTORS | {"edge": "MENTORS"}, MENTORS | {"edge": "mentors"}))

    assert list(found) == ["edge:Mentors"]
    assert found["edge:Mentors"].lines.tolist() == [1, 2, 3]


def test_a_node_and_an_edge_may_share_a_name() -> None:
    shared = compile_text("node Link { x: I32? }\nedge Link: Link -> Link")

    found = read(
        lines({"type": "Link", "data": {"x": 1}}, {"edge": "Link", "from": "a", "to": "b"}), catalog=shared
    )

    assert sorted(found) == ["edge:Link", "node:Link"]


def test_values_that_do_not_fit_are_flaws_of_kind_type() -> None:
    log = ViolationLog()
    document = {"type": "Book", "data": {"code": "AB-1", "title": 5, "price": "x", "format": "paper"}}

    rows = read(lines(document), log)["node:Book"]

    assert messages(log.first_violations()) == [
        (1, "type", "Book.price: expected F64, got string 'x'"),
        (1, "type", "Book.title: expected String, got number"),
    ]
    assert log.first_violations()[0].row_id == "AB-1"
    passing = check_values(rows, log)
    assert passing.tolist() == [False]
    assert [kind for _, kind, _ in messages(log.first_violations())] == ["required", "type", "type"]


def test_a_record_whose_key_does_not_fit_has_no_id_and_no_second_fault() -> None:
    log = ViolationLog()

    rows = read(lines({"type": "Author", "data": {"handle": 1, "name": "N", "id": "1"}}), log)["node:Author"]

    assert rows.ids.to_pylist() == [None]
    assert [(kind, item) for _, kind, item in messages(log.first_violations())] == [
        ("type", "Author.handle: expected String, got number")
    ]


def test_a_number_too_large_for_the_fast_parser_is_a_matter_of_its_value() -> None:
    log = ViolationLog()
    book = (
        '{"type": "Book", "data": {"code": "AB-1", "title": "t", "format": "paper", "added": 0, "price": %s}}'
    )

    rows = read((book % "1e400").encode(), log)["node:Book"]
    check_values(rows, log)

    assert messages(log.first_violations()) == [(1, "type", "Book.price must be finite, not inf")]
    assert read((book % ("1" + "0" * 30)).encode())["node:Book"].table["price"].to_pylist() == [1e30]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"type": "Author",}',
        b"{'type': 'Author'}",
        b'{"type": NaN}',
        b'{"type": "Author", "data": {"name": Infinity}}',
        b'{"type": "Author"} {"type": "Author"}',
        b'{"type": "Author", "data": {"name": "\\ud800"}}',
        b'{"type": "a\tb"}',
        b"\xef\xbb\xbf" + lines(AUTHOR),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"type": ' + b"1" * 5_000 + b"x}",
    ],
)
def test_what_is_no_json_is_refused(line: bytes) -> None:
    ((number, kind, message),) = refusals(lines(AUTHOR) + b"\n" + line)

    assert (number, kind) == (2, "record")
    assert message.startswith("invalid JSON: ")


def test_a_line_that_only_the_fast_parser_can_follow_is_refused() -> None:
    deep = b'{"type": "Author", "data": {"x" :' + b"[" * 1_000 + b"]" * 1_000 + b'}, "y": ":"}'

    assert [(number, kind) for number, kind, _ in refusals(deep)] == [(1, "record")]


def test_bad_lines_beyond_what_is_shown_are_counted() -> None:
    log = ViolationLog(limit=3)

    read(lines(*({"type": f"Authr{number}"} for number in range(50))), log)

    assert log.total == 50
    assert messages(log.first_violations())[2] == (
        3,
        "record",
        "unknown node type 'Authr2'; did you mean 'Author'?",
    )


# --- duplicate members

NAMES = st.sampled_from(["a", "b", ":", '"', "a:", '":', "\\", "data", "é", "a\\"])
TEXTS = st.text(alphabet='ab:" \\\t{},é', max_size=8)
SPACES = st.sampled_from(["", " ", "\t", "  "])


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> str:
    """Return the text of an object, perhaps with members that stand twice, oddly spaced or spelled."""
    members = []
    for name in draw(st.lists(NAMES, max_size=4, unique=draw(st.booleans()))):
        quoted = json.dumps(name, ensure_ascii=draw(st.booleans()))
        if name == "a" and draw(st.booleans()):
            quoted = '"\\u0061"'
        value = (
            draw(objects(depth + 1))
            if depth < 2 and draw(st.booleans())
            else json.dumps(draw(st.none() | st.integers() | TEXTS | st.lists(TEXTS, max_size=2)))
        )
        members.append(f"{quoted}{draw(SPACES)}:{draw(SPACES)}{value}")
    return "{" + f"{draw(SPACES)},".join(members) + draw(SPACES) + "}"


def repeats(text: str) -> bool:
    """Return whether a member stands twice in any object of a text."""
    found = False

    def pairs(members: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal found
        found = found or len({name for name, _ in members}) < len(members)
        return dict(members)

    json.loads(text, object_pairs_hook=pairs)
    return found


@given(data=objects(), extra=st.sampled_from(["", ', "type": "Author"', ', "\\u0064ata": {}']), spaced=SPACES)
def test_a_member_that_stands_twice_is_found_at_any_depth_and_only_then(
    data: str, extra: str, spaced: str
) -> None:
    text = f'{{"type"{spaced}: "Author", "data":{data}{extra}}}'

    found = refusals(text.encode())

    assert any("appears twice" in message for _, _, message in found) == repeats(text)


def test_lines_without_anything_odd_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(line: bytes) -> object:
        raise AssertionError(line)

    patched(monkeypatch, "omnigraph.validate.records._parse", never)
    odd_values = {"handle": "a", "name": "12:30:00 https://x.org", "email": "x :y"[:1]}

    read(lines({"type": "Author", "data": odd_values}, AUTHOR, MENTORS))


# --- limits


def test_a_limit_of_tokens_counts_structure_and_not_text() -> None:
    busy = lines({"type": "Author", "data": {"handle": "a", "name": "{[,:]}" * 100}})

    assert read(busy, limits=ReadLimits(line_tokens_max=10))["node:Author"].count == 1
