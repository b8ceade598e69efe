"""Requests to a server: what is sent again, and what becomes of an answer that never came.

H1  A request is sent again only if it cannot have been carried out: nobody listened, the server said that it
    has enough to do (429), or that it is not ready (503) without an interrupted write.
H2  A write whose answer was lost is never sent again: it may have been carried out (`CommitOutcomeUnknown`).
H3  The token goes to the server's own address alone: redirects are not followed.
H4  A document is one of those that its request can be answered with (`wire.responses`), or none is returned.
H5  What is in memory is bounded, whatever a server sends: a document, and what it says of a refusal. One
    layer of gzip is asked for and taken, which makes no more than a thousand bytes of one.
"""

import json
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NoReturn

import httpx

from omnigraph import __version__
from omnigraph.client.answer import Document
from omnigraph.client.error_body import error_of
from omnigraph.client.understood import check_document, understood
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.access_errors import CommitOutcomeUnknown, RateLimited, TransportError
from omnigraph.core.cancellation import begin_effects, check_cancelled, pause, take_back_effects
from omnigraph.core.errors import BadRequest, HandleClosed, HandleForked, OmnigraphError
from omnigraph.core.values import HALF_A_PAIR, is_count, is_text, named, read_json, shown
from omnigraph.wire.error_document import CLASS_HEADER
from omnigraph.wire.responses import WireDocument
from omnigraph.wire.write_id import WRITE_ID

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0  # between two bytes of an answer; a query of minutes is no mistake
RETRIES = 3
FIRST_WAIT_S = (
    0.1  # before the second attempt, unless the server says; each further one is three times as long
)
BACKOFF_MAX_S = 10.0
WAIT_MAX_S = 90.0  # the longest that a server may ask for; it says 60 when an actor has enough under way
_SENT_NOTHING = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)
_NO_ADDRESS = (httpx.InvalidURL, UnicodeError)  # a host that no name of a machine can be
DOCUMENT_BYTES_MAX = 1024 * 1024 * 1024  # rows that are more are streamed
REFUSAL_BYTES_MAX = 16 * 1024 * 1024  # conflicts of a merge are listed in full
_ENCODINGS = {"", "identity", "gzip"}
_REQUEST_TIMEOUT = 408  # what came of the request, or of most of it, is not known to who says this
_FOUND = frozenset({302})  # an answer to who asks for bytes: where they are

UrlParams = Mapping[str, str | int | bool | Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Write:
    """A write, for the error of its lost answer: the branch it is for, and that branch's head before it."""

    branch: str
    head_before: str | None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(18))  # nobody else's, without asking

    def lost(self) -> CommitOutcomeUnknown:
        """Return the error of its lost answer."""
        return CommitOutcomeUnknown(branch=self.branch, head_before=self.head_before, write_id=self.id)


@contextmanager
def _told_on_interrupt(write: Write | None) -> Iterator[None]:
    """Say on an interrupt that a write was sent and has no answer; its cause is the error of that (H2)."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as interrupt:
        if write is None:
            raise
        lost = write.lost()
        interrupt.add_note(f"{lost}, or ask what became of write {write.id} (GET /writes/{write.id})")
        raise interrupt from lost


class BrokenAnswer(Exception):
    """An answer that is not what its beginning says: it was cut off, or something else made it."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer as it comes; it is taken once."""

    headers: Mapping[str, str]
    pieces: Iterator[bytes]
    status: int = 200

    @property
    def media_type(self) -> str:
        """The type of its content, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def document(self, *shapes: type[WireDocument]) -> Document:
        """Return all of it, as a document of one of these shapes (H4).

        Raises:
            BrokenAnswer: it is no document.
            TransportError: it is another one.
        """
        try:
            document = read_json(b"".join(_bounded(self.pieces, DOCUMENT_BYTES_MAX)))
        except ValueError as error:
            raise BrokenAnswer(str(error)) from error
        return check_document(document, *shapes)


@dataclass(frozen=True, slots=True)
class HttpPatience:
    """How long to wait for an answer, and how often to send what cannot have been carried out (H1)."""

    timeout_s: float = ANSWER_TIMEOUT_S
    retries: int = RETRIES

    def __post_init__(self) -> None:
        """Refuse what is no time, or no number of times.

        Raises:
            BadRequest: one is neither.
        """
        timeout = self.timeout_s
        if isinstance(timeout, bool) or not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
            raise BadRequest(f"timeout must be a number of seconds above 0, not {shown(timeout)}")
        if not is_count(self.retries):
            raise BadRequest(f"retries must be a whole number from 0 on, not {shown(self.retries)}")

    @property
    def waits_s(self) -> list[float]:
        """The pauses before each further attempt, unless the server says how long."""
        return [min(round(FIRST_WAIT_S * 3**attempt, 1), BACKOFF_MAX_S) for attempt in range(self.retries)]


class Http:
    """A connection to one server or graph, by its address; threads may share it."""

    def __init__(
        self,
        url: ServerUrl,
        token: str | None,
        *,
        patience: HttpPatience | None = None,
        sleep: Callable[[float], object] = pause,
    ) -> None:
        """Take the address that all paths are below, and the token for it; nothing is sent yet."""
        patience = HttpPatience() if patience is None else patience
        self.url, self._sleep, self._patience = url, sleep, patience
        self._process = os.getpid()  # connections are of the process that made them
        headers = {"User-Agent": f"omnigraph/{__version__}", "Accept-Encoding": "gzip"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(
                patience.timeout_s, connect=min(CONNECT_TIMEOUT_S, patience.timeout_s), pool=None
            ),
            follow_redirects=False,  # H3
            # Proxies are those of the environment, which no project can name (config/env_file.py, E3).
            trust_env=True,
            # Reading all certificates takes longer than a request; without TLS there is nothing to verify.
            verify=url.scheme == "https",
        )

    def __enter__(self) -> "Http":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._client.is_closed

    def pause(self, seconds: float) -> None:
        """Wait before asking again."""
        self._sleep(seconds)

    def get(self, path: str, shape: type[WireDocument], params: UrlParams | None = None) -> Document:
        """Ask for a document.

        Raises:
            OmnigraphError: what the server answered instead; `TransportError` if that was nothing.
        """
        return self.send("GET", path, shape, params=params)

    def send(
        self,
        method: str,
        path: str,
        *shapes: type[WireDocument],
        params: UrlParams | None = None,
        body: Document | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        write: Write | None = None,
    ) -> Document:
        """Send a request and return the document it is answered with, which has one of these shapes.

        Raises:
            OmnigraphError: what the server answered instead; `TransportError` if that was nothing, and
                `CommitOutcomeUnknown` if the request was a write (H2).
        """
        with self.stream(
            method, path, params=params, body=body, content=content, headers=headers, write=write
        ) as answer:
            return answer.document(*shapes)

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        params: UrlParams | None = None,
        body: Document | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        write: Write | None = None,
    ) -> "Iterator[HttpReply]":
        """Send a request, and yield the answer as it comes.

        Raises:
            OmnigraphError: what the server answered instead, or what is raised where the answer breaks off.
        """
        request = self._request(
            method,
            path,
            params=_given(params),
            content=content if body is None else _json(body),
            headers={
                **({} if body is None else {"Content-Type": "application/json"}),
                **_sendable(headers or {}),
                **({} if write is None else {WRITE_ID: write.id}),
            },
        )
        with self._answer(request, write) as answer:
            try:
                yield HttpReply(answer.headers, _decoded(answer), answer.status_code)
            except (httpx.TransportError, httpx.DecodingError, BrokenAnswer) as error:
                _lost(self.url, write, error)
            except TransportError as error:  # another document: who sent it says nothing of the write
                if write is None:
                    raise
                _lost(self.url, write, error)

    def head(self, path: str, params: UrlParams) -> Mapping[str, str]:
        """Ask what a GET would be answered with, and return the headers of that.

        Raises:
            OmnigraphError: what the server refused; `TransportError` if it gave no answer.
        """
        with self._answer(self._request("HEAD", path, params=_given(params)), None, _FOUND) as answer:
            return answer.headers

    @contextmanager
    def fetch(self, path: str, params: UrlParams, headers: Mapping[str, str]) -> "Iterator[HttpReply]":
        """Ask for bytes, and yield the answer with them as they are on the wire, or with where they are (H3).

        Raises:
            OmnigraphError: what the server answered instead, or `TransportError` where they break off.
        """
        request = self._request("GET", path, params=_given(params), headers=_sendable(headers))
        with self._answer(request, None, _FOUND) as answer:
            try:
                yield HttpReply(answer.headers, answer.iter_raw(), answer.status_code)
            except (httpx.TransportError, httpx.DecodingError, BrokenAnswer) as error:
                _lost(self.url, None, error)

    def _request(self, method: str, path: str, **content: Any) -> httpx.Request:  # noqa: ANN401 - as httpx has them
        if os.getpid() != self._process:
            raise HandleForked
        if self._client.is_closed:
            raise HandleClosed
        try:
            return self._client.build_request(method, f"{self.url}{path}", **content)
        except _NO_ADDRESS as error:
            raise _no_address(self.url) from error

    @contextmanager
    def _answer(
        self, request: httpx.Request, write: Write | None, accepted: frozenset[int] = frozenset()
    ) -> Iterator[httpx.Response]:
        """Send a request, again where that is safe (H1), and yield the answer of a success."""
        for wait in (*self._patience.waits_s, None):
            check_cancelled()
            if write is not None:
                begin_effects()  # once it is sent, nobody can take it back
            try:
                with _told_on_interrupt(write):
                    answer = self._client.send(request, stream=True)
            except _NO_ADDRESS as error:
                raise _no_address(self.url) from error
            except _SENT_NOTHING as error:
                if wait is None or not isinstance(error, httpx.ConnectError):
                    raise TransportError(f"no server answers at {self.url}: {error}") from error
                take_back_effects()
                self.pause(wait)
                continue
            except httpx.TransportError as error:
                _lost(self.url, write, error)
            try:
                with _told_on_interrupt(write):
                    if answer.is_success or answer.status_code in accepted:
                        yield answer
                        return
                    refusal = self._refusal(answer, write)
            finally:
                answer.close()
            if wait is None or not _is_worth_another(refusal, answer.status_code):
                raise refusal
            take_back_effects()
            self.pause(_asked_wait(answer, default=wait, refusal=refusal))

    def _said(self, answer: httpx.Response) -> Iterator[bytes]:
        """Yield what an answer says of a refusal: for as long as one waits for a byte of another answer.

        Raises:
            BrokenAnswer: it does not come to an end.
        """
        until = time.monotonic() + self._patience.timeout_s
        for piece in _bounded(_decoded(answer), REFUSAL_BYTES_MAX):
            if time.monotonic() > until:
                raise BrokenAnswer("it does not come to an end")
            yield piece

    def _refusal(self, answer: httpx.Response, write: Write | None) -> OmnigraphError:
        """Return the error that an answer carries."""
        try:
            body = read_json(b"".join(self._said(answer)))
        except (httpx.TransportError, httpx.DecodingError, BrokenAnswer, ValueError):
            body = None
        if isinstance(body, dict) and "error" in body:
            try:
                with understood():
                    return error_of(answer.status_code, body, answer.headers.get(CLASS_HEADER))
            except TransportError as error:
                return error if write is None else write.lost()
        # It is from something in between, which may have passed the request on and lost the answer.
        if write is not None and (answer.status_code >= 500 or answer.status_code == _REQUEST_TIMEOUT):
            return write.lost()
        if answer.status_code in {401, 403, 404, 429}:
            return error_of(answer.status_code, {}, None)
        return TransportError(f"{self.url} answered with status {answer.status_code}, not as omnigraph does")


def _decoded(answer: httpx.Response) -> Iterator[bytes]:
    """Return the bytes of an answer, unpacked.

    Raises:
        BrokenAnswer: it is packed more than once, or otherwise than it was asked for (H5).
    """
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    if encoding not in _ENCODINGS:
        raise BrokenAnswer("it is encoded otherwise than was asked for")
    return answer.iter_bytes()


def _bounded(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Yield pieces of what is to be in memory as a whole.

    Raises:
        BrokenAnswer: they are too many bytes (H5).
    """
    for piece in pieces:
        most -= len(piece)
        if most < 0:
            raise BrokenAnswer("it is larger than any of this API")
        yield piece


def _no_address(url: ServerUrl) -> BadRequest:
    return BadRequest(f"'{url!s:.200}' is not the address of a server: no machine can be called so")


def _lost(url: ServerUrl, write: Write | None, error: Exception) -> NoReturn:
    if write is not None:
        raise write.lost() from error
    raise TransportError(f"the answer of {url} was lost on the way: {error}") from error


def _is_worth_another(refusal: OmnigraphError, status: int) -> bool:
    """Return whether a refused request was not carried out and may succeed later (H1)."""
    if isinstance(refusal, CommitOutcomeUnknown):
        return False
    return status == 429 or (status == 503 and refusal.detail != "recovery_required")


def _asked_wait(answer: httpx.Response, *, default: float, refusal: OmnigraphError) -> float:
    """Return how long to wait: as long as the server asks for.

    Raises:
        OmnigraphError: the refusal itself, if that is longer than anyone wants to wait.
    """
    text = answer.headers.get("Retry-After", "")
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        return default
    if isinstance(refusal, RateLimited):
        refusal.retry_after_s = int(text)
    if int(text) > WAIT_MAX_S:
        raise refusal
    return float(text)


def _json(body: Document) -> bytes:
    """Return a body as it is sent.

    Raises:
        BadRequest: a member of it cannot be; it is named.
    """
    try:
        return _dumped(body)
    except (TypeError, ValueError, RecursionError) as error:
        for name, value in body.items():
            try:
                _dumped(value)
            except UnicodeError:
                raise BadRequest(f"{name}: {HALF_A_PAIR}") from error
            except (TypeError, ValueError, RecursionError):
                raise BadRequest(f"{name} cannot be sent: it is {named(value)}, or has a part") from error
        raise


def _dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _sendable(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers of which none has what a header cannot have.

    Raises:
        BadRequest: one has; no id of a commit and no ETag of this API does.
    """
    for value in headers.values():
        if not (isinstance(value, str) and value.isascii() and value.isprintable()):
            raise BadRequest(f"{shown(value)} is no id of a commit")
    return dict(headers)


def _whole(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise BadRequest(f"{name} must be a list of texts, and has {named(text)}")
    if not is_text(text):
        raise BadRequest(f"{name}: {HALF_A_PAIR}")
    return text


def _given(params: UrlParams | None) -> list[tuple[str, str | int | float | bool | None]] | None:
    """Return the parameters that have a value; a list is a parameter that repeats."""
    if params is None:
        return None
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in params.items():
        match value:
            case None:
                continue
            case bool():
                pairs.append((name, "true" if value else "false"))
            case int():
                pairs.append((name, str(value)))
            case str():
                pairs.append((name, _whole(name, value)))
            case list() | tuple():
                pairs += [(name, _whole(name, item)) for item in value]
            case _:
                raise BadRequest(f"{name} must be a text, not {named(value)}")
    return pairs
