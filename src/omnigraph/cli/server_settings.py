"""What a server is told on the command line, in the environment and in a project file, as one value.

A flag wins over the environment, and that over the file. The file's `env_file` is read before tokens are
looked for.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.core.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.config.project_file import GraphEntry, ProjectFile
    from omnigraph.graph.stored_files import DeclaredQueries
    from omnigraph.policy.model import Policy
    from omnigraph.server.settings import Bind, ServedGraph, ServerSettings

_log = logging.getLogger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class GivenServer:
    """What the command line says; None where it says nothing."""

    uri: str | None
    config: str | None
    target: str | None
    bind: str | None
    queries_place: Path | None
    is_unauthenticated: bool
    default_graph: str | None = None
    requires_all_graphs: bool = False

    def settings(self) -> "ServerSettings":
        """Return the settings of the server that is meant.

        Raises:
            click.UsageError: no graph is named, or the address to listen on is none.
            BadRequest: a file cannot be used, or asks for what a server cannot do.
        """
        from omnigraph.server.settings import Bind, ServerLimits, ServerSettings
        from omnigraph.server.tokens import tokens_from_environment

        project = None if self.config is None else _project(self.config)
        graphs, default = self._graphs(project)
        bind = self.bind or (None if project is None else project.bind)
        return ServerSettings(
            graphs,
            default,
            Bind() if bind is None else _bind(bind),
            tokens_from_environment(),
            self.is_unauthenticated or is_set("OMNIGRAPH_UNAUTHENTICATED"),
            ServerLimits.from_environment(),
            None if project is None else _server_policy(project),
            self.requires_all_graphs or is_set("OMNIGRAPH_REQUIRE_ALL_GRAPHS"),
        )

    def _graphs(self, project: "ProjectFile | None") -> "tuple[tuple[ServedGraph, ...], str | None]":
        """Return the graphs to serve, and the one whose routes need no prefix."""
        from omnigraph.graph.guard import policy_of_project
        from omnigraph.server.settings import DEFAULT_GRAPH, ServedGraph

        if self.default_graph is not None and (self.uri is not None or self.target is not None):
            raise click.UsageError("--default-graph chooses among several graphs, and one is named already")
        if self.uri is not None:
            if self.target is not None:
                raise click.UsageError("a URI and --target both name the graph: give one of them")
            policy = None if project is None else policy_of_project(project.policy_file)
            return (ServedGraph(DEFAULT_GRAPH, self.uri, self._queries(project), policy),), DEFAULT_GRAPH
        if project is None:
            raise click.UsageError(
                "which graph? Give its URI, set OMNIGRAPH_TARGET_URI, or name a project file with --config"
            )
        entries = _chosen(project, self.target or project.server_graph)
        if len(entries) > 1:
            if self._queries(project) is not None:
                raise BadRequest(
                    f"{project.path}: stored queries are those of one graph: choose it with --target, or in "
                    "server: {graph: NAME}"
                )
            served = (
                ServedGraph(entry.name, entry.uri, None, _policy_of(project, entry)) for entry in entries
            )
            return tuple(served), self._default_of(project, entries)
        (only,) = entries
        if self.default_graph not in {None, only.name}:
            raise click.UsageError(f"--default-graph: only graph '{only.name}' is served")
        policy = _policy_of(project, only)
        return (ServedGraph(only.name, only.uri, self._queries(project), policy),), only.name

    def _default_of(self, project: "ProjectFile", entries: "list[GraphEntry]") -> str | None:
        names = [entry.name for entry in entries]
        if self.default_graph is not None and self.default_graph not in names:
            listed = ", ".join(sorted(names))
            raise click.UsageError(
                f"--default-graph: {project.path} serves no graph '{self.default_graph}'; use one of {listed}"
            )
        return self.default_graph

    def _queries(self, project: "ProjectFile | None") -> "DeclaredQueries | None":
        from omnigraph.graph.stored_files import given_queries

        if self.queries_place is not None:
            return given_queries(self.queries_place)
        return None if project is None else project.queries


def is_set(name: str) -> bool:
    """Say whether a flag is set by the environment: by anything but nothing, `0` and `false`."""
    return os.environ.get(name, "").strip().lower() not in {"", "0", "false"}


def _project(config: str) -> "ProjectFile":
    from omnigraph.config.configuration import read_project
    from omnigraph.config.places import project_path

    path, warnings = project_path(config), list[str]()
    assert path is not None, "it is named"
    project = read_project(path, warnings)
    for warning in warnings:
        _log.warning("%s", warning)
    return project


def _chosen(project: "ProjectFile", name: str | None) -> "list[GraphEntry]":
    """Return the graph that is meant, or all that can be served."""
    entries = list(project.graphs.values()) if name is None else [project.graph_entry(name)]
    stored = [entry for entry in entries if not entry.uri.lower().startswith(("http://", "https://"))]
    if not stored:
        what = (
            "names no graph by its storage" if name is None else f"graph '{name}' is behind a server already"
        )
        raise BadRequest(f"{project.path}: {what}: a server opens the storage of a graph")
    return stored


def _policy_of(project: "ProjectFile", entry: "GraphEntry") -> "Policy | None":
    """Return the policy of a graph: its own, else that of the project.

    Raises:
        BadRequest: it cannot be read, or is for servers.
    """
    from omnigraph.graph.guard import graph_policy, policy_of_project

    if entry.policy_file is None:
        return policy_of_project(project.policy_file)
    return graph_policy(entry.policy_file)


def _server_policy(project: "ProjectFile") -> "Policy | None":
    """Return the policy of the server: its own, else that of the project if it is one.

    Raises:
        BadRequest: it cannot be read, or is for graphs.
    """
    from omnigraph.policy.model import Policy, PolicyKind

    file = project.server_policy_file
    if file is not None:
        own = Policy.read(file)
        if own.kind is not PolicyKind.SERVER:
            raise BadRequest(f"{file} is a policy for graphs: server.policy needs one of kind server")
        return own
    found = None if project.policy_file is None else Policy.read(project.policy_file)
    return found if found is not None and found.kind is PolicyKind.SERVER else None


def _bind(text: str) -> "Bind":
    from omnigraph.server.settings import Bind

    try:
        return Bind.parse(text)
    except BadRequest as error:
        raise click.UsageError(f"--bind: {error}") from error
