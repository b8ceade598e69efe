"""Every setting that has a value, with the file that it comes from."""

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.config.configuration import Configuration
from omnigraph.config.operator_file import OperatorFile
from omnigraph.config.project_file import ProjectFile
from omnigraph.graph.stored_files import DeclaredQueries


@dataclass(frozen=True, slots=True)
class Setting:
    """One value: where files differ, the one that applies."""

    name: str
    value: str
    source: str


def effective_settings(configuration: Configuration) -> list[Setting]:
    """Return the merged configuration, in a fixed order; it holds no token."""
    operator, project = configuration.operator, configuration.project
    return [
        *_merged(operator, project),
        *(() if operator is None else _of_operator(operator)),
        *(() if project is None else _of_project(project)),
    ]


def _merged(operator: OperatorFile | None, project: ProjectFile | None) -> Iterator[Setting]:
    """Yield what both files may say: the project's word comes first."""
    files = [file for file in (project, operator) if file is not None]
    for name in ("actor", "output", "table_max_column_width", "table_cell_layout"):
        for file in files:
            value = getattr(file if name == "actor" else file.reads, name)
            if value is not None:
                yield Setting(name, str(value), str(file.path))
                break


def _of_operator(file: OperatorFile) -> Iterator[Setting]:
    source = str(file.path)
    for name, value in (
        ("defaults.server", file.server),
        ("defaults.store", file.store),
        ("defaults.default_graph", file.default_graph),
    ):
        if value is not None:
            yield Setting(name, value, source)
    for name, url in file.servers.items():
        yield Setting(f"servers.{name}", str(url), source)
    for name, root in file.clusters.items():
        yield Setting(f"clusters.{name}", root, source)
    for name, profile in file.profiles.items():
        bound = ", ".join(f"{kind} {target}" for kind, target in profile.bindings)
        yield Setting(f"profiles.{name}", bound or "nothing", source)
        if profile.default_graph is not None:
            yield Setting(f"profiles.{name}.default_graph", profile.default_graph, source)
    for name, alias in file.aliases.items():
        yield Setting(f"aliases.{name}", f"stored query {alias.query}", source)


def _of_project(file: ProjectFile) -> Iterator[Setting]:
    source = str(file.path)
    for name, value in (
        ("project.name", file.name),
        ("auth.env_file", file.env_file),
        ("cli.graph", file.graph),
        ("cli.branch", file.branch),
        ("server.graph", file.server_graph),
        ("server.bind", file.bind),
        ("policy.file", file.policy_file),
        ("server.policy.file", file.server_policy_file),
    ):
        if value is not None:
            yield Setting(name, str(value), source)
    for root in file.query_roots:
        yield Setting("query.roots", str(root), source)
    for name, entry in file.graphs.items():
        yield Setting(f"graphs.{name}", entry.uri, source)
        if entry.bearer_token_env is not None:
            yield Setting(f"graphs.{name}.bearer_token_env", entry.bearer_token_env, source)
        if entry.policy_file is not None:
            yield Setting(f"graphs.{name}.policy.file", str(entry.policy_file), source)
    if file.queries is not None:
        yield from _of_queries(file.queries, source)
    for name, alias in file.aliases.items():
        yield Setting(f"aliases.{name}", f"{alias.kind} of {alias.query}", source)


def _of_queries(queries: DeclaredQueries, source: str) -> Iterator[Setting]:
    """Yield the places of stored queries, in the form in which they are declared."""
    for place in (*(() if queries.folder is None else (queries.folder,)), *queries.files):
        yield Setting("queries", str(place), source)
    for query in queries.named:
        yield Setting(f"queries.{query.name}.file", str(query.file), source)
        if not query.is_exposed:
            yield Setting(f"queries.{query.name}.expose", "false", source)
        if query.tool_name is not None:
            yield Setting(f"queries.{query.name}.tool_name", query.tool_name, source)
