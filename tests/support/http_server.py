"""A server as a process over real sockets, and as an application inside of this one."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.commands import prepared
from tests.support.pages import REPOSITORY

LISTENING = "OMNIGRAPH_LISTEN_ADDR="
TOKENS = {"act-mira": "mira-token-0123456789", "act-tomas": "tomas-token-9876543210"}
WAIT_S = 60.0
_HIDDEN = ("Traceback", 'File "', f"{tempfile.gettempdir()}/", str(REPOSITORY), sys.prefix, str(Path.home()))
_SECRET_LEAST = 12  # a shorter one may be a word that an error says
_SECRET = re.compile(r"_(KEY|SECRET|TOKEN|PASSWORD)$")


@dataclass
class RunningServer:
    """A server that listens, and where its log goes."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path

    @property
    def url(self) -> str:
        """What requests begin with."""
        return f"http://{self.address}"

    def client(self, token: str | None = None) -> httpx.Client:
        """Return a client of this server, which sends a token if one is given."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return client_of(self.url, headers)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def told(self) -> str:
        """Return the log so far."""
        return self.log.read_text(encoding="utf-8")


@contextmanager
def running_server(
    graph: Path | str | None,
    *arguments: str,
    tokens: Mapping[str, str] | None = None,
    log: Path,
    ends_with: int = 0,
    **variables: str,
) -> Iterator[RunningServer]:
    """Start a server on a free port, and stop it at the end: it exits with 0 and its log has no traceback.

    Without a graph, and with no tokens but an empty mapping, the arguments say what to serve and to whom.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("OMNIGRAPH_SERVER")
    }
    environment |= {"PYTHONUTF8": "1", **variables}
    if tokens is None:
        arguments = ("--unauthenticated", *arguments)
    elif tokens:
        environment["OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"] = json.dumps(tokens)
    place = () if graph is None else (str(graph), "--bind", "127.0.0.1:0")
    command = prepared(
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)",
        *("server", *place, *arguments),
    )
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip()
        assert line.startswith(LISTENING), log.read_text(encoding="utf-8")
        server = RunningServer(process, line.removeprefix(LISTENING), log)
        yield server
        assert server.stop() == ends_with, server.told()
        assert "Traceback" not in server.told(), server.told()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def client_of(url: str, headers: Mapping[str, str] | None = None) -> httpx.Client:
    """Return a client that looks at every error it gets for what no error shows."""
    hooks = {"response": [_look_at]}
    return httpx.Client(base_url=url, headers=headers, timeout=WAIT_S, event_hooks=hooks)


def _look_at(response: httpx.Response) -> None:
    if response.is_error:
        response.read()
        shows_nothing(response)


def shows_nothing(response: httpx.Response) -> None:
    """Assert that an error shows no traceback, no place on this machine and no secret."""
    presented = response.request.headers.get("authorization", "").partition(" ")[2].strip()
    secrets = {presented, *TOKENS.values()}
    secrets |= {value for name, value in os.environ.items() if _SECRET.search(name)}
    for text in (*_HIDDEN, *(secret for secret in secrets if len(secret) >= _SECRET_LEAST)):
        assert text not in response.text, (text, response.text)


def error_of(response: httpx.Response, status: int, code: str | None) -> str:
    """Return the text of an error, after a look at its status, its code and the type of its body."""
    assert response.status_code == status, response.text
    shows_nothing(response)
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body.get("code") == code, body
    assert isinstance(body["error"], str)
    return str(body["error"])
