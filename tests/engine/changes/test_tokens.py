"""Cursors and page tokens: what is accepted, and what is refused with which reason."""

import base64
import hashlib
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from omnigraph.changes import tokens
from omnigraph.changes.position import ID_BYTES_MAX, Position
from omnigraph.changes.tokens import (
    CommitPage,
    Cursor,
    FeedPage,
    TokenScope,
    commit_page_text,
    cursor_text,
    feed_page_text,
    read_commit_page,
    read_cursor,
    read_feed_page,
)
from omnigraph.core.errors import ChangeCursorRejected
from omnigraph.core.limits import PAGE_TOKEN_BYTES_MAX

SCOPE = TokenScope("domain", "genesis", "review/june", "incarnation", "filter")
POSITION = Position("node", "type", "ada")


def test_tokens_come_back_as_they_were() -> None:
    page = FeedPage(SCOPE, "done", "cut", True, POSITION)
    between = FeedPage(SCOPE, "done", "cut", False, None)
    commit = CommitPage(SCOPE, "commit", Position("edge", "type", "x" * 200, "digest"))

    assert read_cursor(cursor_text(Cursor(SCOPE, "done")), SCOPE) == Cursor(SCOPE, "done")
    assert read_feed_page(feed_page_text(page), SCOPE) == page
    assert read_feed_page(feed_page_text(between), SCOPE) == between
    assert read_commit_page(commit_page_text(commit), SCOPE, "commit") == commit


@pytest.mark.case("engine", 278)
@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("graph", "another graph"),
        ("genesis", "another graph"),
        ("branch", "another branch"),
        ("incarnation", "another branch of that name, deleted since"),
        ("filter", "another filter"),
    ],
)
def test_a_token_of_something_else_is_rejected(part: str, reason: str) -> None:
    text = cursor_text(Cursor(replace(SCOPE, **{part: "other"}), "done"))

    with pytest.raises(ChangeCursorRejected, match=f"^change cursor rejected: it belongs to {reason}$"):
        read_cursor(text, SCOPE)


@pytest.mark.case("engine", 278)
def test_one_kind_of_token_is_not_taken_for_another() -> None:
    cursor = cursor_text(Cursor(SCOPE, "done"))
    feed = feed_page_text(FeedPage(SCOPE, "done", "cut", True, None))
    commit = commit_page_text(CommitPage(SCOPE, "commit", POSITION))

    for text in (feed, commit):
        with pytest.raises(ChangeCursorRejected, match="expected a cursor, and this is a page token"):
            read_cursor(text, SCOPE)
    for text in (cursor, commit):
        with pytest.raises(ChangeCursorRejected, match="expected a page token of a feed"):
            read_feed_page(text, SCOPE)
    with pytest.raises(ChangeCursorRejected, match="another commit"):
        read_commit_page(commit, SCOPE, "other")


@pytest.mark.case("engine", 278)
def test_every_damaged_character_is_found() -> None:
    text = cursor_text(Cursor(SCOPE, "done"))

    for place, letter in enumerate(text):
        other = "A" if letter != "A" else "B"
        damaged = text[:place] + other + text[place + 1 :]
        if base64.urlsafe_b64decode(damaged + "==") == base64.urlsafe_b64decode(text + "=="):
            continue  # the spare bits of the last character mean nothing
        with pytest.raises(ChangeCursorRejected):
            read_cursor(damaged, SCOPE)


@pytest.mark.case("engine", 278)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "damaged"),
        ("not base64!", "not a cursor"),
        ("ü", "not a cursor"),
        ("A" * 40, "damaged"),
        ("A" * (PAGE_TOKEN_BYTES_MAX + 1), "more than 4096 bytes"),
    ],
)
def test_what_is_no_token_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(ChangeCursorRejected, match=reason):
        read_cursor(text, SCOPE)


@pytest.mark.case("engine", 278)
@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"format": tokens.FORMAT + 1, "kind": "cursor"}, "version"),
        ({"format": tokens.FORMAT, "kind": "new"}, "something else"),
        ({"format": tokens.FORMAT, "kind": []}, "something else"),
        ({}, "version"),
        ([1], "not a cursor"),
        ("text", "not a cursor"),
    ],
)
def test_a_whole_token_with_strange_content_is_rejected(document: object, reason: str) -> None:
    with pytest.raises(ChangeCursorRejected, match=reason):
        read_cursor(_sealed(json.dumps(document).encode()), SCOPE)


def test_a_token_that_lacks_a_part_is_rejected() -> None:
    bare = {"format": tokens.FORMAT, "kind": "feed_page", **_members(SCOPE)}
    wrong = {**bare, "done": "d", "cut": "c", "inside": {"kind": 1}}

    for document in (bare, wrong, {**wrong, "inside": [1]}):
        with pytest.raises(ChangeCursorRejected, match="lacks a part"):
            read_feed_page(_sealed(json.dumps(document).encode()), SCOPE)
    with pytest.raises(ChangeCursorRejected, match="not a cursor"):
        read_cursor(_sealed(b"\xff"), SCOPE)


@pytest.mark.case("engine", 279)
def test_a_position_finds_its_place_among_long_ids_that_begin_alike() -> None:
    stem = "ä" * ID_BYTES_MAX
    ids = sorted(["a", "b", *(f"{stem}{number:03d}" for number in range(50)), stem, "ö", "\U0001f600"])
    array = pa.array(ids, pa.utf8())

    for place, entity_id in enumerate(ids):
        position = Position.of("node", "type", entity_id)
        assert len(position.prefix.encode()) <= ID_BYTES_MAX
        assert position.place_in(array) == place
        with pytest.raises(ChangeCursorRejected):
            position.place_in(pa.array([other for other in ids if other != entity_id], pa.utf8()))


@pytest.mark.case("engine", 279)
def test_the_longest_token_fits() -> None:
    scope = TokenScope("d" * 26, "g" * 26, "%" * 200, "i" * 32, "f" * 32)
    position = Position.of("node", "t" * 32, "\x01" * 10_000)

    text = feed_page_text(FeedPage(scope, "d" * 26, "c" * 26, True, position))

    assert len(text) <= PAGE_TOKEN_BYTES_MAX
    assert read_feed_page(text, scope).inside == position


def _sealed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data + hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _members(scope: TokenScope) -> dict[str, str]:
    names = ("graph", "genesis", "branch", "incarnation", "filter")
    return {name: getattr(scope, name) for name in names}
