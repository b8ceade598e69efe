"""The operator file: who I am, the servers I use, my defaults, profiles and aliases.

It holds no secret: tokens are in the credentials (`config/credentials.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from omnigraph.config.section import Section
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.errors import BadRequest

TOKEN_VARIABLES = "OMNIGRAPH_TOKEN_"  # noqa: S105 - followed by the name of a server
FORMATS = ("table", "kv", "csv", "jsonl", "json")
LAYOUTS = ("truncate", "wrap")
COLUMN_WIDTH_LEAST, COLUMN_WIDTH_MOST = 4, 10_000  # below, an ellipsis would be all that is left of a cell
SERVER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")

ScopeKind = Literal["server", "cluster", "store"]
SCOPE_KINDS: tuple[ScopeKind, ...] = ("server", "cluster", "store")


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How the rows of a read are printed; None where a file does not say."""

    output: str | None = None
    table_max_column_width: int | None = None
    table_cell_layout: str | None = None


NOTHING_SAID = ReadSettings()


@dataclass(frozen=True, slots=True)
class Profile:
    """A named scope; one that does not bind exactly one thing is kept, to be shown as invalid."""

    name: str
    bindings: tuple[tuple[ScopeKind, str], ...]
    default_graph: str | None

    @property
    def problem(self) -> str | None:
        """What is wrong with it, or None."""
        if len(self.bindings) != 1:
            bound = " and ".join(kind for kind, _ in self.bindings) or "none of them"
            return f"profile '{self.name}' must bind one of server, cluster and store; it binds {bound}"
        if self.default_graph is not None and self.bindings[0][0] == "store":
            return f"profile '{self.name}' binds a store, which is one graph: remove default_graph"
        return None

    @property
    def binding(self) -> tuple[ScopeKind, str]:
        """What it binds.

        Raises:
            BadRequest: it does not bind exactly one thing.
        """
        if (problem := self.problem) is not None:
            raise BadRequest(problem)
        return self.bindings[0]


@dataclass(frozen=True, slots=True)
class OperatorAlias:
    """A personal name for a stored query on a server."""

    name: str
    server: str | None
    graph: str | None
    query: str
    args: tuple[str, ...]
    params: Mapping[str, object]
    format: str | None


@dataclass(frozen=True, slots=True)
class OperatorFile:
    """All of the operator file."""

    path: Path
    actor: str | None = None
    servers: Mapping[str, ServerUrl] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    reads: ReadSettings = NOTHING_SAID
    server: str | None = None
    store: str | None = None
    default_graph: str | None = None
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    aliases: Mapping[str, OperatorAlias] = field(default_factory=dict)


def read_operator_file(path: Path, warnings: list[str]) -> OperatorFile:
    """Return the operator file; unknown keys are added to the warnings.

    Raises:
        BadRequest: it cannot be read, or something in it is wrong; file, line and key are named.
    """
    top = Section.of_file(path, warnings)
    operator, defaults = top.section("operator"), top.section("defaults")
    found = OperatorFile(
        path=path,
        actor=operator.text("actor"),
        servers=_servers(top),
        clusters=_clusters(top),
        reads=read_settings(defaults, output="output"),
        server=defaults.text("server"),
        store=defaults.text("store"),
        default_graph=defaults.text("default_graph"),
        profiles={name: _profile(name, section) for name, section in top.sections("profiles")},
        aliases={name: _alias(name, section) for name, section in top.sections("aliases")},
    )
    if found.server is not None and found.store is not None:
        defaults.refuse("store", "cannot be combined with defaults.server: keep one of the two")
    if found.default_graph is not None and found.server is None:
        defaults.refuse("default_graph", "goes with defaults.server: a store is one graph")
    for section in (operator, defaults, top):
        section.end()
    return found


def read_settings(section: Section, *, output: str) -> ReadSettings:
    """Return how rows are printed; `output` is the key of the format, which differs between files."""
    return ReadSettings(
        section.choice(output, FORMATS),
        section.number("table_max_column_width", least=COLUMN_WIDTH_LEAST, most=COLUMN_WIDTH_MOST),
        section.choice("table_cell_layout", LAYOUTS),
    )


def token_variable(server: str) -> str:
    """Return the variable that may hold the token of a server."""
    return f"{TOKEN_VARIABLES}{server.upper().replace('-', '_')}"


def _servers(top: Section) -> dict[str, ServerUrl]:
    servers: dict[str, ServerUrl] = {}
    by_variable: dict[str, str] = {}
    for name, section in top.sections("servers"):
        if SERVER_NAME.fullmatch(name) is None:
            section.refuse("url", f"belongs to a server named '{name}': use letters, digits, _ and -")
        # One variable for two servers would send the token of one to the other.
        other = by_variable.setdefault(token_variable(name), name)
        if other != name:
            section.refuse("url", f"belongs to '{name}', whose token would be that of '{other}': rename one")
        url = section.text("url")
        if url is None:
            section.refuse("url", "is missing")
        try:
            servers[name] = ServerUrl.parse(url)
        except BadRequest as error:
            section.refuse("url", f"is wrong: {error}")
        section.end()
    return servers


def _clusters(top: Section) -> dict[str, str]:
    clusters = {}
    for name, section in top.sections("clusters"):
        root = section.text("root")
        if root is None:
            section.refuse("root", "is missing")
        clusters[name] = root
        section.end()
    return clusters


def _profile(name: str, section: Section) -> Profile:
    given = [(kind, section.text(kind)) for kind in SCOPE_KINDS]
    bindings = tuple((kind, value) for kind, value in given if value is not None)
    profile = Profile(name, bindings, section.text("default_graph"))
    section.end()
    return profile


def _alias(name: str, section: Section) -> OperatorAlias:
    query = section.text("query")
    if query is None:
        section.refuse("query", "is missing: name a stored query")
    alias = OperatorAlias(
        name=name,
        server=section.text("server"),
        graph=section.text("graph"),
        query=query,
        args=section.texts("args") or (),
        params=section.values("params"),
        format=section.choice("format", FORMATS),
    )
    section.end()
    return alias
