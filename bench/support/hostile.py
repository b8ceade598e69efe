"""Requests that are wrong on purpose, and how long each takes a server to answer.

Bodies that do not come are left out: their answer is given when the wait for them is over, as it is set.
"""

import base64
import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from time import perf_counter

ROUNDS = 3
ENOUGH_MS = 1_000.0  # of one request: what takes longer is not repeated
BODY_BYTES = 1_000_000  # a little less than a body may have
LOAD_BYTES = 32_000_000
NESTED_PARENTHESES = 100_000
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_TOKEN = base64.urlsafe_b64encode(json.dumps(["main", "main", 10**30, []]).encode()).decode()
_JOIN = "query q() { match { $a: Item  $b: Item  $c: Item } return { $a.key, $b.key, $c.key } }"
_SUM = " + ".join(["1"] * (BODY_BYTES // 4))


def requests() -> Iterator[tuple[str, bytes]]:
    """Yield what each request is, and its bytes."""
    for path in ("/commits/..%2F..%2Fetc%2Fpasswd", "/commits/%ff%fe", "/snapshot?branch=" + "x" * 8_000):
        yield f"the path {path:.32}", _get(path)
    yield "a number without end", _get("/commits?limit=" + "9" * 4_000)
    yield "a page token that is none", _get(f"/diff?from=main&to=main&page_token={_TOKEN}")
    yield "a header of 200 KB", _get("/snapshot", "X-Large: " + "x" * 200_000 + "\r\n")
    yield "20,000 headers", _get("/snapshot", "X-More: x\r\n" * 20_000)
    for what, body in (
        ("brackets", b"[" * BODY_BYTES),
        ("objects inside of objects", b'{"a":' * (BODY_BYTES // 5)),
        ("a number as a body", b"9" * BODY_BYTES),
        ("half of a string", b'{"query": "' + b"x" * BODY_BYTES),
        ("bytes that are no text", b'{"query": "' + b"\xff" * BODY_BYTES + b'"}'),
        ("blanks", b" " * BODY_BYTES),
        ("a body that is too large", b" " * (2 * BODY_BYTES)),
    ):
        yield what, _post("/query", body)
    for what, text in (
        ("a text of letters", "x" * BODY_BYTES),
        ("a text of parentheses", "query q() { match { $i: Item } return { " + "(" * NESTED_PARENTHESES),
        ("a sum of 250,000 numbers", f"query q() {{ match {{ $i: Item }} return {{ {_SUM} as x }} }}"),
        ("a million million million rows", _JOIN),
        ("a comment without an end", "/*" * (BODY_BYTES // 2)),
        ("quotes", '"' * (BODY_BYTES // 2)),
    ):
        yield what, _post("/query", json.dumps({"query": text}).encode())
        yield f"{what}, to be checked", _post("/query/check", json.dumps({"query": text}).encode())
    yield (
        "a schema of braces",
        _post("/schema/plan", json.dumps({"schema_source": "{" * BODY_BYTES}).encode()),
    )
    ndjson = "application/x-ndjson"
    yield "32 MB that are no lines", _post("/load/ndjson?mode=append", b"x" * LOAD_BYTES, ndjson)
    yield "a million empty objects", _post("/load/ndjson?mode=append", b"{}\n" * 1_000_000, ndjson)
    arrow = "application/vnd.apache.arrow.stream"
    yield (
        "32 MB that are no Arrow stream",
        _post("/load/arrow?mode=append&type=Item", b"\xff" * LOAD_BYTES, arrow),
    )
    yield "what is not HTTP", b"\x16\x03\x01" + b"\xff" * 1_000 + b"\r\n\r\n"


def slowest(address: tuple[str, int]) -> Iterator[tuple[float, int, str]]:
    """Yield the longest time of each request in milliseconds, its status and what it is; no failure."""
    for what, request in requests():
        took, status = 0.0, 0
        for _ in range(ROUNDS):
            started = perf_counter()
            status = _status(address, request)
            took = max(took, (perf_counter() - started) * 1000)
            if took > ENOUGH_MS:
                break
        assert 200 <= status < 500, (what, status)
        yield took, status, what


def _status(address: tuple[str, int], request: bytes) -> int:
    """Send a request, read the whole answer and return its status."""
    with socket.create_connection(address) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was read
            connection.sendall(request)
        answer = b""
        while not _is_whole(answer):
            piece = connection.recv(1 << 16)
            if not piece:
                break
            answer += piece
    return int(answer.split(maxsplit=2)[1])


def _is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(end) and length is not None and len(body) >= int(length[1])


def _get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n{headers}\r\n".encode()


def _post(path: str, body: bytes, media_type: str = "application/json") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {media_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
