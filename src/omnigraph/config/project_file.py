"""The project file `omnigraph.yaml`: the graphs of a project, how to serve them, names for its queries.

It is committed with the schema and the queries. Paths in it are relative to its own folder; they are resolved
here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from omnigraph.config.declared_queries import declared_queries
from omnigraph.config.operator_file import FORMATS, NOTHING_SAID, TOKEN_VARIABLES, ReadSettings, read_settings
from omnigraph.config.section import Section
from omnigraph.core.errors import BadRequest
from omnigraph.graph.stored_files import DeclaredQueries

_READS, _CHANGES = ("read", "query"), ("change", "mutate")


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """A graph of the project: in its storage, or behind a server."""

    name: str
    uri: str
    bearer_token_env: str | None = None
    policy_file: Path | None = None


@dataclass(frozen=True, slots=True)
class ProjectAlias:
    """A name for a query of the project, with parameters that are given or taken from arguments."""

    name: str
    kind: Literal["read", "mutation"]
    query: str
    query_name: str | None
    args: tuple[str, ...]
    params: Mapping[str, object]
    format: str | None
    branch: str | None
    graph: str | None


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """All of the project file."""

    path: Path
    name: str | None = None
    env_file: Path | None = None
    graphs: Mapping[str, GraphEntry] = field(default_factory=dict)
    graph: str | None = None
    branch: str | None = None
    actor: str | None = None
    reads: ReadSettings = NOTHING_SAID
    server_graph: str | None = None
    bind: str | None = None
    query_roots: tuple[Path, ...] = ()
    policy_file: Path | None = None
    server_policy_file: Path | None = None
    queries: DeclaredQueries | None = None
    aliases: Mapping[str, ProjectAlias] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)  # from its `env_file`

    def graph_entry(self, name: str) -> GraphEntry:
        """Return a graph of the project.

        Raises:
            BadRequest: it has none of that name; those that exist are listed.
        """
        if name not in self.graphs:
            known = ", ".join(self.graphs) or "none"
            raise BadRequest(f"{self.path} has no graph '{name}' under graphs: it has {known}")
        return self.graphs[name]


def read_project_file(path: Path, warnings: list[str]) -> ProjectFile:
    """Return the project file; unknown keys are added to the warnings.

    Raises:
        BadRequest: it cannot be read, or something in it is wrong; file, line and key are named.
    """
    top = Section.of_file(path, warnings)
    top.refuse_old("targets", "graphs")
    top.refuse_old("target", "graph")
    project, auth, cli, server, query = (
        top.section(key) for key in ("project", "auth", "cli", "server", "query")
    )
    cli.refuse_old("target", "graph")
    server.refuse_old("target", "graph")
    found = ProjectFile(
        path=path,
        name=project.text("name"),
        env_file=_path(auth, "env_file"),
        graphs={name: _graph(name, section) for name, section in top.sections("graphs")},
        graph=cli.text("graph"),
        branch=cli.text("branch"),
        actor=cli.text("actor"),
        reads=read_settings(cli, output="output_format"),
        server_graph=server.text("graph"),
        bind=server.text("bind"),
        query_roots=tuple(path.parent / root for root in query.texts("roots") or ()),
        policy_file=_policy(top),
        server_policy_file=_policy(server),
        queries=declared_queries(top),
        aliases={name: _alias(name, section) for name, section in top.sections("aliases")},
    )
    for section in (project, auth, cli, server, query, top):
        section.end()
    return found


def _graph(name: str, section: Section) -> GraphEntry:
    uri = section.text("uri")
    if uri is None:
        section.refuse("uri", "is missing")
    token = section.text("bearer_token_env")
    if token is not None and token.startswith(TOKEN_VARIABLES):  # it would leave the operator's server
        section.refuse(
            "bearer_token_env", f"must not begin with {TOKEN_VARIABLES}: that is a server's own token"
        )
    entry = GraphEntry(name, _beside(section.file, uri), token, _policy(section))
    section.end()
    return entry


def _alias(name: str, section: Section) -> ProjectAlias:
    section.refuse_old("target", "graph")
    command = section.choice("command", (*_READS, *_CHANGES))
    query = section.text("query")
    if query is None:
        section.refuse("query", "is missing: name a .gq file")
    alias = ProjectAlias(
        name=name,
        kind="mutation" if command in _CHANGES else "read",
        query=query,
        query_name=section.text("name"),
        args=section.texts("args") or (),
        params=section.values("params"),
        format=section.choice("format", FORMATS),
        branch=section.text("branch"),
        graph=section.text("graph"),
    )
    section.end()
    return alias


def _policy(section: Section) -> Path | None:
    policy = section.section("policy")
    path = _path(policy, "file")
    if path is None and section.mentions("policy"):  # whoever writes the word wants to be guarded by it
        section.refuse("policy", "names no file: give 'file', or leave 'policy' out")
    policy.end()
    return path


def _path(section: Section, key: str) -> Path | None:
    text = section.text(key)
    return None if text is None else section.file.parent / text


def _beside(file: Path, uri: str) -> str:
    """Return the address of a graph; a relative path is one beside the file."""
    return uri if "://" in uri else str(file.parent / uri)
