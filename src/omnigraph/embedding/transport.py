"""Requests to a remote provider: timeouts, one deadline, retries.

H1  All attempts of a request end by its deadline, including waits; a wait that would pass it is not begun.
H2  Only failures that may pass are retried: no connection, no answer in time, 429 and 5xx.
H3  Messages name the provider, its host and a status, never a body or a header, which may hold the key.
H4  An answer is limited in decompressed bytes: a small one that expands to a large one is not expanded.
"""

import math
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from omnigraph.core.clock import now_micros
from omnigraph.core.errors import EmbeddingError
from omnigraph.core.values import read_json
from omnigraph.embedding.config import EmbeddingConfig

REPLY_BYTES_MAX = 64 * 1024 * 1024  # 256 vectors of 3,072 numbers written out take 20 MB
_GZIP = 16 + zlib.MAX_WBITS
BACKOFF_MAX_S = 30.0  # no wait between two attempts is longer, unless the provider asks for it


@dataclass(frozen=True, slots=True)
class Timing:
    """What waits and measures; tests pass their own."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class _TryAgain(Exception):
    """An attempt failed in a way that may pass (H2)."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class Transport:
    """One HTTP client of one provider, used for all its requests."""

    def __init__(self, config: EmbeddingConfig, timing: Timing | None = None) -> None:
        """Take the settings; nothing is connected before the first request."""
        self._config = config
        self._timing = timing or Timing()
        self._client = httpx.Client(follow_redirects=False, headers={"accept-encoding": "gzip"})

    def post(self, url: str, body: object, headers: Mapping[str, str]) -> object:
        """Return the JSON that a provider answers with.

        Raises:
            EmbeddingError: it cannot be reached, refuses, or does not answer in time or with JSON.
        """
        deadline = self._timing.monotonic() + self._config.deadline_s
        for attempt in range(1, self._config.retry_attempts + 1):
            try:
                return self._attempt(url, body, headers, deadline)
            except _TryAgain as failure:
                wait = max(failure.wait_s, self._backoff_s(attempt))
                if attempt == self._config.retry_attempts:
                    raise self._error(url, f"{failure} ({attempt} attempts)") from failure.__cause__
                if self._timing.monotonic() + wait >= deadline:
                    raise self._late(url, str(failure)) from failure.__cause__
                self._timing.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _attempt(self, url: str, body: object, headers: Mapping[str, str], deadline: float) -> object:
        left = deadline - self._timing.monotonic()
        if left <= 0:
            raise self._late(url, "no time was left")
        timeout = min(self._config.timeout_ms / 1_000, left)
        try:
            with self._client.stream("POST", url, json=body, headers=headers, timeout=timeout) as response:
                self._check_status(url, response)
                return self._read(url, response, deadline)
        except httpx.TimeoutException as error:
            raise _TryAgain("no answer in time") from error
        except httpx.TransportError as error:
            raise _TryAgain("no connection, or a broken one") from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, zlib.error) as error:
            raise self._error(
                url, "a request that cannot be sent or an answer that cannot be read"
            ) from error

    def _check_status(self, url: str, response: httpx.Response) -> None:
        status = response.status_code
        if status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise _TryAgain(f"status {status}", _retry_after_s(response.headers.get("retry-after", "")))
        if not response.is_success:
            hint = ": check the key" if status in {401, 403} else ""
            raise self._error(url, f"status {status}{hint}")

    def _read(self, url: str, response: httpx.Response, deadline: float) -> object:
        """Return the body; a slow trickle does not outlive the deadline."""
        body, unpack = bytearray(), self._unpacking(url, response)
        for chunk in response.iter_raw():
            body += unpack(chunk, REPLY_BYTES_MAX + 1 - len(body))
            if len(body) > REPLY_BYTES_MAX:
                raise self._error(url, f"an answer of more than {REPLY_BYTES_MAX} bytes")
            if self._timing.monotonic() >= deadline:
                raise self._late(url, "the answer was still coming")
        try:
            return read_json(bytes(body))
        except ValueError:
            raise self._error(url, "an answer that is not JSON") from None

    def _unpacking(self, url: str, response: httpx.Response) -> Callable[[bytes, int], bytes]:
        """Return what decompresses the body piece by piece, never more bytes than requested (H4)."""
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        if packing == "identity":
            return lambda chunk, _: chunk
        if packing != "gzip":
            raise self._error(url, "an answer compressed in a way that was not requested")
        return zlib.decompressobj(_GZIP).decompress

    def _backoff_s(self, attempt: int) -> float:
        return min(BACKOFF_MAX_S, self._config.retry_backoff_ms / 1_000 * 2.0 ** (attempt - 1))

    def _late(self, url: str, last: str) -> EmbeddingError:
        return self._error(url, f"no vector within {self._config.deadline_ms} ms ({last})")

    def _error(self, url: str, reason: str) -> EmbeddingError:
        kind = self._config.kind
        return EmbeddingError(f"{kind} at {_host(url)}: {reason}", provider=kind)


def _host(url: str) -> str:
    """Return the host of an address: user names, paths and parameters may hold secrets."""
    try:
        return httpx.URL(url).host or "an address without a host"
    except httpx.InvalidURL:
        return "an invalid address"


def _retry_after_s(header: str) -> float:
    """Return the seconds that a provider asks to wait; zero if it does not, or in an unknown form."""
    if header.isdecimal():
        return float(header)
    now = datetime.fromtimestamp(now_micros() / 1e6, UTC)
    try:
        wait = (parsedate_to_datetime(header).astimezone(UTC) - now).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):  # the library raises all of these on headers
        return 0.0
    return max(0.0, wait) if math.isfinite(wait) else 0.0
