"""Cursors and page tokens: the state that a consumer keeps, since the engine keeps none for it.

K1  A token is base64url of JSON and its SHA-256: damage is found before anything is read from it.
K2  A token says what it is (cursor or page) and what it belongs to: graph, branch with its incarnation,
    filter or commit. Anything that does not fit is refused with the reason, never followed.
K3  A token has at most 4,096 bytes.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from omnigraph.changes.position import Position
from omnigraph.core.errors import ChangeCursorRejected
from omnigraph.core.limits import PAGE_TOKEN_BYTES_MAX
from omnigraph.core.values import named, read_json

FORMAT = 1
_DIGEST_BYTES = 32

TokenKind = Literal["cursor", "feed_page", "commit_page"]
_NAMES: dict[object, str] = {
    "cursor": "a cursor",
    "feed_page": "a page token of a feed",
    "commit_page": "a page token of a commit",
}
Members = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TokenScope:
    """What a token belongs to (K2); `branch` is empty for the pages of one commit."""

    graph: str
    genesis: str
    branch: str
    incarnation: str
    filter: str


@dataclass(frozen=True, slots=True)
class Cursor:
    """A feed between two commits: everything up to and including `done` was delivered."""

    scope: TokenScope
    done: str


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A poll that is not finished: what was delivered, and the last commit that it goes up to.

    `is_head` says whether that was the newest commit when the poll began.
    """

    scope: TokenScope
    done: str
    cut: str
    is_head: bool
    inside: Position | None


@dataclass(frozen=True, slots=True)
class CommitPage:
    """The changes of one commit, after a position."""

    scope: TokenScope
    commit: str
    inside: Position


def cursor_text(cursor: Cursor) -> str:
    """Return a cursor as a text."""
    return _seal("cursor", cursor.scope, {"done": cursor.done})


def feed_page_text(page: FeedPage) -> str:
    """Return the token of a poll's next page."""
    inside = None if page.inside is None else asdict(page.inside)
    members = {"done": page.done, "cut": page.cut, "is_head": page.is_head, "inside": inside}
    return _seal("feed_page", page.scope, members)


def commit_page_text(page: CommitPage) -> str:
    """Return the token of a commit's next page."""
    return _seal("commit_page", page.scope, {"commit": page.commit, "inside": asdict(page.inside)})


def read_cursor(text: str, scope: TokenScope) -> Cursor:
    """Return a cursor that belongs here.

    Raises:
        ChangeCursorRejected: it is damaged, or belongs elsewhere.
    """
    members = _open(text, "cursor", scope)
    return Cursor(scope, _text(members, "done"))


def read_feed_page(text: str, scope: TokenScope) -> FeedPage:
    """Return the next page of a poll of this feed.

    Raises:
        ChangeCursorRejected: it is damaged, or belongs elsewhere.
    """
    members = _open(text, "feed_page", scope)
    done, cut = _text(members, "done"), _text(members, "cut")
    return FeedPage(scope, done, cut, members.get("is_head") is True, _position(members))


def read_commit_page(text: str, scope: TokenScope, commit_id: str) -> CommitPage:
    """Return the next page of this commit.

    Raises:
        ChangeCursorRejected: it is damaged, or belongs elsewhere.
    """
    members = _open(text, "commit_page", scope)
    inside = _position(members)
    if _text(members, "commit") != commit_id or inside is None:
        raise ChangeCursorRejected("it belongs to another commit")
    return CommitPage(scope, commit_id, inside)


def _seal(kind: TokenKind, scope: TokenScope, members: Members) -> str:
    document = {"format": FORMAT, "kind": kind, **asdict(scope), **members}
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    text = base64.urlsafe_b64encode(data + hashlib.sha256(data).digest()).rstrip(b"=").decode()
    assert len(text) <= PAGE_TOKEN_BYTES_MAX, "names and prefixes are bounded"
    return text


def _open(text: str, kind: TokenKind, scope: TokenScope) -> dict[str, object]:
    """Check a token and return its members (K1, K2, K3)."""
    members = _decode(text)
    if members.get("format") != FORMAT:
        raise ChangeCursorRejected("this build cannot read its version")
    found = members.get("kind")
    if found != kind:
        known = _NAMES.get(found, "something else") if isinstance(found, str) else "something else"
        raise ChangeCursorRejected(f"expected {_NAMES[kind]}, and this is {known}")
    expected = {
        "graph": (scope.graph, "graph"),
        "genesis": (scope.genesis, "graph"),
        "branch": (scope.branch, "branch"),
        "incarnation": (scope.incarnation, "branch of that name, deleted since"),
        "filter": (scope.filter, "filter"),
    }
    for name, (value, what) in expected.items():
        if members.get(name) != value:
            raise ChangeCursorRejected(f"it belongs to another {what}")
    return members


def _decode(text: object) -> dict[str, object]:
    if not isinstance(text, str):
        raise ChangeCursorRejected(f"it is {named(text)}, not a text")
    if len(text) > PAGE_TOKEN_BYTES_MAX:
        raise ChangeCursorRejected(f"it has more than {PAGE_TOKEN_BYTES_MAX} bytes")
    try:
        sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ChangeCursorRejected("it is not a cursor") from None
    data, digest = sealed[:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    if hashlib.sha256(data).digest() != digest:
        raise ChangeCursorRejected("it is damaged")
    try:
        members = read_json(data)
    except ValueError:
        raise ChangeCursorRejected("it is not a cursor") from None
    if not isinstance(members, dict):
        raise ChangeCursorRejected("it is not a cursor")
    return members


def _text(members: Members, name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str):
        raise ChangeCursorRejected("it lacks a part")
    return value


def _position(members: Members) -> Position | None:
    inside = members.get("inside")
    if inside is None:
        return None
    if not isinstance(inside, dict):
        raise ChangeCursorRejected("it lacks a part")
    digest = None if inside.get("digest") is None else _text(inside, "digest")
    return Position(_text(inside, "kind"), _text(inside, "type_id"), _text(inside, "prefix"), digest)
