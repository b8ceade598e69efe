"""Addresses of servers, compared part by part, because a token goes where an address says.

U1  An address is below another one only if scheme, host and port are equal and its path goes on at a `/`. A
    host that merely begins with the same letters is another host.
U2  What could make two readers see two places is refused: user names, queries, fragments, `.` and `..`,
    blanks, backslashes and encoded slashes or dots in a path.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from omnigraph.core.errors import BadRequest

SERVED = re.compile(r"https?://", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!-~]+")
_TWO_READINGS = re.compile(r"\\|%2f|%2e|%5c", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """The address of a server, or of a graph on one, without a slash at its end."""

    scheme: str
    host: str
    port: int
    path: str

    @staticmethod
    def parse(text: str) -> "ServerUrl":
        """Return an address as it was meant.

        Raises:
            BadRequest: it is not the address of a server, or could be read in two ways (U2).
        """
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise BadRequest(f"'{text:.200}' is not the address of a server") from None
        if port == 0:  # nobody listens there, and it is not the port that is left out
            raise BadRequest(f"'{text:.200}' is not the address of a server: port 0 is none")
        scheme = parts.scheme.lower()
        if scheme not in _PORTS or not parts.hostname or _PLAIN.fullmatch(text) is None:
            raise BadRequest(
                f"'{text:.200}' is not the address of a server: it begins with http:// or https://"
            )
        if "@" in parts.netloc:
            raise BadRequest(
                "a server's address has no user and no password: a token goes with 'omnigraph login'"
            )
        if "?" in text or "#" in text:
            raise BadRequest(f"'{text:.200}': a server's address ends with its path")
        path = parts.path.rstrip("/")
        segments = path.split("/")[1:]
        if _TWO_READINGS.search(path) or any(segment in {"", ".", ".."} for segment in segments):
            raise BadRequest(f"'{text:.200}': write the path of a server's address plainly")
        return ServerUrl(scheme, parts.hostname.lower().rstrip("."), port or _PORTS[scheme], path)

    def covers(self, other: "ServerUrl") -> bool:
        """Return whether another address is this one, or below it (U1)."""
        is_same_server = (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)
        return is_same_server and f"{other.path}/".startswith(f"{self.path}/")

    def graph(self, graph_id: str) -> "ServerUrl":
        """Return the address of a graph on this server."""
        return ServerUrl(self.scheme, self.host, self.port, f"{self.path}/graphs/{graph_id}")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"
