"""Numbers of a server, in the form that Prometheus reads.

Several workers of one server keep their numbers in files of one folder, so that whichever of them is asked
tells those of all.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import Response

if TYPE_CHECKING:
    from omnigraph.server.observed import ObservedRequest

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's own; `--workers` sets it
# A point query takes about a millisecond, a commit tens of them, a load or an export minutes.
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_LABELS = ("graph", "method", "route")


class Metrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._own = CollectorRegistry()
        self._requests = Counter(
            "omnigraph_http_requests",
            "Requests that were answered, or given up.",
            (*_LABELS, "status"),
            registry=self._own,
        )
        self._seconds = Histogram(
            "omnigraph_http_request_seconds",
            "Seconds from the head of a request to the last byte of its answer.",
            _LABELS,
            buckets=BUCKETS_S,
            registry=self._own,
        )
        self._in_flight = Gauge(
            "omnigraph_http_requests_in_flight",
            "Requests that are being answered.",
            registry=self._own,
            multiprocess_mode="livesum",
        )
        self._streams = Gauge(
            "omnigraph_http_event_streams",
            "Streams of new commits that are open.",
            registry=self._own,
            multiprocess_mode="livesum",
        )

        # The numbers of what was answered before: the library finds them by their words, which takes longer.
        self._kept: dict[tuple[str, str, str, int], tuple[Counter, Histogram]] = {}

    def begin(self) -> None:
        """Count a request as being answered, until `end`."""
        self._in_flight.inc()

    def end(self, request: "ObservedRequest") -> None:
        """Add a request that has ended."""
        self._in_flight.dec()
        key = (request.graph, request.method, request.route, request.status)
        kept = self._kept.get(key)
        if kept is None:
            labels = (request.graph, request.method, request.route)
            kept = self._requests.labels(*labels, str(request.status)), self._seconds.labels(*labels)
            self._kept[key] = kept
        requests, seconds = kept
        requests.inc()
        seconds.observe(request.seconds)

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Count a stream of commits as open while the block runs."""
        with self._streams.track_inprogress():
            yield

    def answer(self) -> Response:
        """Return all numbers, those of other workers included."""
        registry = self._own
        if os.environ.get(SHARED_FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library has no types here
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
