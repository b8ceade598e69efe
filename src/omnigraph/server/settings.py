"""What a server is started with: a value, made once and never looked up again."""

from dataclasses import dataclass, field

from omnigraph.core.environment import number_setting
from omnigraph.core.errors import BadRequest
from omnigraph.graph.stored_files import DeclaredQueries
from omnigraph.operations.query import TIMEOUT_MS
from omnigraph.policy.model import Policy
from omnigraph.server.tokens import TokenDigests

BODY_LIMIT, LOAD_BODY_LIMIT = "OMNIGRAPH_BODY_LIMIT_BYTES", "OMNIGRAPH_LOAD_BODY_LIMIT_BYTES"
BODY_WAIT = "OMNIGRAPH_BODY_WAIT_S"
INFLIGHT_MAX, BYTES_MAX = "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", "OMNIGRAPH_PER_ACTOR_BYTES_MAX"
DRAIN_WAIT = "OMNIGRAPH_DRAIN_WAIT_S"

DEFAULT_GRAPH = "default"  # what a graph without a name of its own is called in routes
PORT_MAX = 65_535
JSON_LOAD_BYTES_MAX = 256 * 1024 * 1024  # JSON is held in memory, several times over while it is read


@dataclass(frozen=True, slots=True)
class Bind:
    """The address to listen on; port 0 is chosen by the system."""

    host: str = "127.0.0.1"
    port: int = 8080

    @staticmethod
    def parse(text: str) -> "Bind":
        """Read `HOST:PORT`, where a host that is an IPv6 address stands in brackets.

        Raises:
            BadRequest: the text is not of that form.
        """
        host, colon, port = text.strip().rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        is_port = port.isascii() and port.isdecimal() and len(port) <= len(str(PORT_MAX))
        if not (colon and host and is_port and int(port) <= PORT_MAX):
            raise BadRequest(f"'{text}' is not an address to listen on: write HOST:PORT, as 127.0.0.1:8080")
        return Bind(host, int(port))


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """A graph to serve, what it is called in routes, its stored queries and its policy."""

    graph_id: str
    uri: str
    queries: DeclaredQueries | None = None
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How much of a server one request and one actor may have; sizes in bytes."""

    body_bytes: int = 1024 * 1024
    load_body_bytes: int = 32 * 1024 * 1024
    body_wait_s: int = 20
    actor_inflight: int = 16
    actor_bytes: int = 4 * 1024**3
    drain_wait_s: int = 30
    read_ms: int = 60_000  # of one read; zero is no limit

    @staticmethod
    def from_environment() -> "ServerLimits":
        """Return the limits that are set; a malformed one gets its default, with a warning."""
        usual = ServerLimits()
        return ServerLimits(
            number_setting(BODY_LIMIT, usual.body_bytes, least=1),
            number_setting(LOAD_BODY_LIMIT, usual.load_body_bytes, least=1),
            number_setting(BODY_WAIT, usual.body_wait_s, least=1),
            number_setting(INFLIGHT_MAX, usual.actor_inflight, least=1),
            number_setting(BYTES_MAX, usual.actor_bytes, least=1),
            number_setting(DRAIN_WAIT, usual.drain_wait_s, least=1),
            number_setting(TIMEOUT_MS, usual.read_ms),
        )


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Everything that decides how a server behaves.

    `default_graph` is the graph whose routes also exist without `/graphs/{id}` in front of them. Of several
    graphs, one that does not open is quarantined, unless `requires_all_graphs`; those in `quarantined` are so
    from the beginning.
    """

    graphs: tuple[ServedGraph, ...]
    default_graph: str | None
    bind: Bind = field(default_factory=Bind)
    tokens: TokenDigests = field(default_factory=TokenDigests)
    is_unauthenticated: bool = False
    limits: ServerLimits = field(default_factory=ServerLimits)
    policy: Policy | None = None  # of the server itself: who may list the graphs
    requires_all_graphs: bool = False
    quarantined: frozenset[str] = frozenset()
