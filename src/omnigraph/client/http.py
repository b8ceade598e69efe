"""Requests to a server: what is sent again, and what becomes of an answer that never came.

H1  A request is sent again only if it cannot have been carried out: nobody listened, the server said that it
    has enough to do (429), or that it is not ready (503) without an interrupted write.
H2  A write whose answer was lost is never sent again: it may have been carried out (`CommitOutcomeUnknown`).
H3  The token goes to the server's own address alone: redirects are not followed.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn

import httpx

from omnigraph import __version__
from omnigraph.client.answer import Document
from omnigraph.client.error_body import error_of
from omnigraph.client.understood import understood
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.access_errors import CommitOutcomeUnknown, RateLimited, TransportError
from omnigraph.core.errors import BadRequest, OmnigraphError
from omnigraph.core.values import read_json
from omnigraph.wire.error_document import CLASS_HEADER

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0  # between two bytes of an answer; a query of minutes is no mistake
ATTEMPTS = 4
WAITS_S = (0.1, 0.3, 0.9)  # before the second, third and fourth attempt, unless the server says
WAIT_MAX_S = 90.0  # the longest that a server may ask for; it says 60 when an actor has enough under way
_SENT_NOTHING = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)
_NO_ADDRESS = (httpx.InvalidURL, UnicodeError)  # a host that no name of a machine can be
_NO_ANSWER_OF_THE_SERVER = {502, 504}  # from a proxy in between, which may have lost the answer

UrlParams = Mapping[str, str | int | bool | Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Write:
    """A write, for the error of its lost answer: the branch it is for, and that branch's head before it."""

    branch: str
    head_before: str | None


class Http:
    """A connection to one server or graph, by its address."""

    def __init__(
        self, url: ServerUrl, token: str | None, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        """Take the address that all paths are below, and the token for it; nothing is sent yet."""
        self.url, self._sleep = url, sleep
        headers = {"User-Agent": f"omnigraph/{__version__}"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
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

    def get(self, path: str, params: UrlParams | None = None) -> Document:
        """Ask for a document.

        Raises:
            OmnigraphError: what the server answered instead; `TransportError` if that was nothing.
        """
        return self.send("GET", path, params=params)

    def send(
        self,
        method: str,
        path: str,
        *,
        params: UrlParams | None = None,
        body: Document | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        write: Write | None = None,
    ) -> Document:
        """Send a request and return the document it is answered with.

        Raises:
            OmnigraphError: what the server answered instead; `TransportError` if that was nothing, and
                `CommitOutcomeUnknown` if the request was a write (H2).
        """
        request = self._request(
            method,
            path,
            params=_given(params),
            json=body,
            content=content,
            headers=dict(headers or {}),
        )
        with self._answer(request, write) as answer:
            try:
                document = read_json(answer.read())
            except (httpx.TransportError, httpx.DecodingError, ValueError) as error:
                _lost(self.url, write, error)
        if not isinstance(document, dict):
            _lost(self.url, write, ValueError("it is not a document"))
        return document

    @contextmanager
    def stream(self, path: str, body: Document) -> Iterator[Iterator[bytes]]:
        """Ask for a stream, and yield its pieces.

        Raises:
            OmnigraphError: what the server answered instead, or `TransportError` where the stream breaks off.
        """
        request = self._request("POST", path, json=body)
        with self._answer(request, None) as answer:
            try:
                yield answer.iter_bytes()
            except (httpx.TransportError, httpx.DecodingError) as error:
                _lost(self.url, None, error)

    def _request(self, method: str, path: str, **content: Any) -> httpx.Request:  # noqa: ANN401 - as httpx has them
        try:
            return self._client.build_request(method, f"{self.url}{path}", **content)
        except _NO_ADDRESS as error:
            raise _no_address(self.url) from error

    @contextmanager
    def _answer(self, request: httpx.Request, write: Write | None) -> Iterator[httpx.Response]:
        """Send a request, again where that is safe (H1), and yield the answer of a success."""
        for wait in (*WAITS_S, None):
            try:
                answer = self._client.send(request, stream=True)
            except _NO_ADDRESS as error:
                raise _no_address(self.url) from error
            except _SENT_NOTHING as error:
                if wait is None or not isinstance(error, httpx.ConnectError):
                    raise TransportError(f"no server answers at {self.url}: {error}") from error
                self._sleep(wait)
                continue
            except httpx.TransportError as error:
                _lost(self.url, write, error)
            try:
                if answer.is_success:
                    yield answer
                    return
                refusal = self._refusal(answer, write)
            finally:
                answer.close()
            if wait is None or not _is_worth_another(refusal, answer.status_code):
                raise refusal
            self._sleep(_asked_wait(answer, default=wait, refusal=refusal))

    def _refusal(self, answer: httpx.Response, write: Write | None) -> OmnigraphError:
        """Return the error that an answer carries."""
        try:
            body = read_json(answer.read())
        except (httpx.TransportError, httpx.DecodingError, ValueError):
            body = None
        if isinstance(body, dict) and "error" in body:
            try:
                with understood():
                    return error_of(answer.status_code, body, answer.headers.get(CLASS_HEADER))
            except TransportError as error:
                return error
        if answer.status_code in _NO_ANSWER_OF_THE_SERVER and write is not None:
            return CommitOutcomeUnknown(branch=write.branch, head_before=write.head_before)
        if answer.status_code in {401, 403, 404, 429}:
            return error_of(answer.status_code, {}, None)
        return TransportError(f"{self.url} answered with status {answer.status_code}, not as omnigraph does")


def _no_address(url: ServerUrl) -> BadRequest:
    return BadRequest(f"'{url!s:.200}' is not the address of a server: no machine can be called so")


def _lost(url: ServerUrl, write: Write | None, error: Exception) -> NoReturn:
    if write is not None:
        raise CommitOutcomeUnknown(branch=write.branch, head_before=write.head_before) from error
    raise TransportError(f"the answer of {url} was lost on the way: {error}") from error


def _is_worth_another(refusal: OmnigraphError, status: int) -> bool:
    """Return whether a refused request was not carried out and may succeed later (H1)."""
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
            case str() | int():
                pairs.append((name, str(value)))
            case _:
                pairs += [(name, item) for item in value]
    return pairs
