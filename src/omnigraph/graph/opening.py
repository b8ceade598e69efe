"""`init` and `open`: from a place to a `Graph`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from omnigraph.core.errors import BadRequest
from omnigraph.core.values import shown
from omnigraph.graph.arguments import check_flags, given_place
from omnigraph.graph.graph import Graph
from omnigraph.graph.guard import given_gate
from omnigraph.graph.source import text_source
from omnigraph.operations.context import check_actor
from omnigraph.operations.open import MaintenanceMode, Writers, close, make_parts, open_graph
from omnigraph.policy.gate import Gate
from omnigraph.storage.control.durability import Durability

if TYPE_CHECKING:
    from omnigraph.catalog.stored_queries import StoredQueries
    from omnigraph.embedding import EmbeddingConfig
    from omnigraph.graph.guard import GivenPolicy
    from omnigraph.graph.stored_files import GivenQueries


def init(
    uri: str | Path,
    schema: str | Path,
    *,
    force: bool = False,
    durability: str | None = None,
    actor: str | None = None,
    policy: "GivenPolicy | None" = None,
) -> Graph:
    """Create an empty graph and open it; `schema` is the text, or the path of a `.pg` file.

    With a policy, the actor needs `admin`, and the graph is opened with it.

    Raises:
        PolicyDenied: the policy does not allow the actor to create graphs.
        ParseError, CatalogError: the schema is invalid.
        AlreadyInitialized: there is already a graph here.
    """
    from omnigraph.operations.init import init_graph

    check_flags(force=force)
    setting, gate = given_durability(durability), given_gate(policy)
    parts = make_parts(given_place("uri", uri), durability=setting)
    init_graph(parts, text_source(schema), force=force, actor=actor, gate=gate)
    return open(uri, durability=durability, actor=actor, policy=policy)


def open(
    uri: str | Path,
    *,
    mode: Literal["rw", "ro"] = "rw",
    actor: str | None = None,
    durability: str | None = None,
    upkeep: bool = True,
    embedding: "EmbeddingConfig | None" = None,
    writers: Literal["many", "one"] | None = None,
    maintenance: Literal["inline", "background"] | None = None,
    queries: "GivenQueries | None" = None,
    policy: "GivenPolicy | None" = None,
) -> Graph:
    """Open a graph; a read-write open first finishes or undoes what dead writers left behind.

    A handle in mode `ro` heals, probes and writes nothing. `actor` is the actor of calls that name none.

    On an object store any number of processes may write, as on a disk. With `writers="one"` this one is the
    only one, or is refused; without it the environment decides (`OMNIGRAPH_WRITERS`), and then `many`.

    A long-lived process may leave the upkeep of what it writes, and heavier maintenance, to a thread of its
    own, which `close` ends: `maintenance="background"`. Without it the environment decides
    (`OMNIGRAPH_MAINTENANCE`), and then writes do it themselves (`inline`).

    `queries` are stored queries for `Graph.invoke`: a folder of `.gq` files, a list of files, or names with
    their files, as in `{"overdue": {"file": "missions.gq", "expose": False}}`.

    With a `policy` (a path, a YAML text or a `Policy`) every call of the handle is decided by it, for the
    actor of the call. Without one everything is allowed.

    Texts given to `nearest` are embedded by the provider that `embedding` names, else by the environment's.

    Raises:
        GraphNotFound: there is no graph at this place.
        BadRequest: the mode, the durability, the number of writers or the kind of maintenance is unknown or
            does not fit, no actor is called so, or stored queries or the policy cannot be read.
        WriterLeaseHeld: another process stands in the way of the only writer, or is that.
    """
    if not _is_word(mode, ("rw", "ro")):
        raise BadRequest(f"mode {shown(mode)} is neither 'rw' nor 'ro'")
    if writers is not None and not _is_word(writers, Writers):
        raise BadRequest(f"writers {shown(writers)} is not one of {', '.join(Writers)}")
    if actor is not None:
        check_actor(actor)
    check_flags(upkeep=upkeep)
    setting, kind = given_durability(durability), _maintenance(maintenance)
    if kind is MaintenanceMode.BACKGROUND and not (upkeep and mode == "rw"):
        raise BadRequest("maintenance='background' is for handles that write and that do upkeep")
    stored, gate = None if queries is None else _stored(queries), given_gate(policy)
    opened = open_graph(
        given_place("uri", uri),
        is_writable=mode == "rw",
        durability=setting,
        upkeep=upkeep,
        embedding=embedding,
        writers=None if writers is None else Writers(writers),
        maintenance=kind,
        gate=gate,
    )
    return Graph(opened, actor, stored=stored)


def open_for_service(
    uri: str, gate: Gate, *, maintenance: MaintenanceMode, stored: "StoredQueries", name: str
) -> Graph:
    """Open a graph for callers who come later, each with an actor of their own, behind a gate.

    Stored queries are compared with the schema before the first of them comes.

    Raises:
        BadRequest: a stored query does not fit; all of those are named.
        OmnigraphError: the graph cannot be opened.
    """
    opened = open_graph(uri, maintenance=maintenance, gate=gate)
    try:
        stored.check(opened.catalog).require_whole(f"graph '{name}'")
        return Graph(opened)
    except BaseException:
        close(opened)
        raise


def open_for_rebuild(uri: str, actor: str | None, policy: "GivenPolicy | None") -> Graph:
    """Open a graph for building indexes anew, whatever became of the files of the old ones.

    Raises:
        OmnigraphError: the graph cannot be opened.
    """
    gate = given_gate(policy)
    opened = open_graph(uri, maintenance=MaintenanceMode.INLINE, gate=gate, needs_indexes=False)
    return Graph(opened, actor)


def _stored(queries: "GivenQueries") -> "StoredQueries":
    from omnigraph.catalog.stored_queries import RegistryCheck
    from omnigraph.graph.stored_files import given_queries, read_stored

    found = read_stored(given_queries(queries))
    RegistryCheck(found.breakages).require_whole("this graph")
    return found


def given_durability(setting: str | None) -> Durability | None:
    """Return the durability that a call asks for; none where it leaves that to the environment.

    Raises:
        BadRequest: there is no such durability.
    """
    if setting is not None and not _is_word(setting, Durability):
        raise BadRequest(f"durability {shown(setting)} is not one of {', '.join(Durability)}")
    return None if setting is None else Durability(setting)


def _maintenance(kind: str | None) -> MaintenanceMode | None:
    if kind is not None and not _is_word(kind, MaintenanceMode):
        raise BadRequest(f"maintenance {shown(kind)} is not one of {', '.join(MaintenanceMode)}")
    return None if kind is None else MaintenanceMode(kind)


def _is_word(value: object, words: Iterable[str]) -> bool:
    """Say whether a value is one of some words; it may be anything, also what no set can hold."""
    return isinstance(value, str) and value in {*words}
