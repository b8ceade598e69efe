"""The log of a server: one JSON object on each line of standard error.

L1  A line has `time`, `level`, `logger` and `message`, then what the message is about. An error that nobody
    expected has its traceback as one text.
"""

import logging
import os
import sys
from datetime import UTC, datetime

import orjson

LEVEL = "OMNIGRAPH_LOG"
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_ABOUT = (
    *("request_id", "actor", "graph", "method", "route", "status", "ms", "worker"),
    *("action", "branch", "target_branch", "outcome", "rule"),
)


class JsonLines(logging.Formatter):
    """Makes one line of JSON of a record (L1)."""

    def __init__(self, worker: int | None = None) -> None:
        """Take which worker it is that tells, if there are several."""
        super().__init__()
        self._worker = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._worker,
        }
        document |= {name: vars(record)[name] for name in _ABOUT if name in vars(record)}
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(document, default=str).decode()


def begin_log(worker: int | None = None) -> None:
    """Write what the server, the engine and uvicorn tell to standard error, from the level set, or info."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(worker))
    level = _LEVELS.get(os.environ.get(LEVEL, "").strip().lower(), logging.INFO)
    # Below an error uvicorn tells of connections and of what is not HTTP, without ids and actors, beside our
    # own lines; OpenTelemetry repeats headers of callers that it cannot read.
    others = (("uvicorn", logging.ERROR), ("opentelemetry", logging.ERROR))
    for name, least in (("omnigraph", level), *((name, max(level, least)) for name, least in others)):
        log = logging.getLogger(name)
        log.handlers = [handler]
        log.setLevel(least)
        log.propagate = False
