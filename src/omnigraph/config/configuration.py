"""Both files together: which settings apply, and which tokens.

Where there is no file, nothing is imported to read one: commands start as fast as without configuration.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.config.places import credentials_path, operator_path, project_path

if TYPE_CHECKING:
    from omnigraph.config.operator_file import OperatorFile, ReadSettings
    from omnigraph.config.project_file import ProjectFile
    from omnigraph.config.server_url import ServerUrl


@dataclass(frozen=True, slots=True)
class Configuration:
    """The operator file and the project file, each None if there is none, and what was odd in them."""

    operator: "OperatorFile | None" = None
    project: "ProjectFile | None" = None
    warnings: tuple[str, ...] = ()

    @property
    def actor(self) -> str | None:
        """Who writes, unless a flag says so: the project's actor, else the operator's."""
        return next((file.actor for file in (self.project, self.operator) if file and file.actor), None)

    @property
    def branch(self) -> str | None:
        """The branch to use, unless a flag or an alias names one."""
        return None if self.project is None else self.project.branch

    @property
    def output(self) -> str | None:
        """The format of reads, unless a flag or an alias names one."""
        return next((reads.output for reads in self._reads() if reads.output), None)

    @property
    def table_max_column_width(self) -> int | None:
        """The widest column of a table, in cells of a terminal."""
        widths = (reads.table_max_column_width for reads in self._reads())
        return next((width for width in widths if width is not None), None)

    @property
    def table_cell_layout(self) -> str | None:
        """What becomes of wider cells: `truncate` or `wrap`."""
        return next((reads.table_cell_layout for reads in self._reads() if reads.table_cell_layout), None)

    @property
    def query_roots(self) -> tuple[Path, ...]:
        """Where query files are searched that are not found as given."""
        return () if self.project is None else self.project.query_roots

    def token_for(self, url: "ServerUrl", bearer_token_env: str | None = None) -> str | None:
        """Return the token that goes with requests to an address, or None.

        Raises:
            BadRequest: the credentials cannot be used, or a token is not one.
        """
        from omnigraph.config.tokens import token_for

        return token_for(
            url,
            servers={} if self.operator is None else self.operator.servers,
            credentials=credentials_path(),
            variables={**({} if self.project is None else self.project.tokens), **os.environ},
            bearer_token_env=bearer_token_env,
        )

    def _reads(self) -> "list[ReadSettings]":
        return [file.reads for file in (self.project, self.operator) if file is not None]


def load_configuration(project: str | None = None) -> Configuration:
    """Read the files that exist; the variables of the project's `env_file` are added to the environment.

    Args:
        project: the project file, or its folder, if the caller names one.

    Raises:
        BadRequest: a file cannot be read, or something in it is wrong.
    """
    operator_place, project_place = operator_path(), project_path(project)
    has_operator = os.path.lexists(operator_place)
    if not has_operator and project_place is None:
        return Configuration()
    warnings: list[str] = []
    operator = _read_operator(operator_place, warnings) if has_operator else None
    found = None if project_place is None else read_project(project_place, warnings)
    return Configuration(operator, found, tuple(warnings))


def read_project(path: Path, warnings: list[str]) -> "ProjectFile":
    """Read a project file, and add the variables of its `env_file` to the environment.

    Raises:
        BadRequest: one of the two cannot be read, or something in it is wrong.
    """
    from omnigraph.config.env_file import load_env_file
    from omnigraph.config.project_file import read_project_file

    project = read_project_file(path, warnings)
    if project.env_file is None:
        return project
    named = {entry.bearer_token_env for entry in project.graphs.values() if entry.bearer_token_env}
    return replace(project, tokens=load_env_file(project.env_file, named, warnings))


def _read_operator(path: Path, warnings: list[str]) -> "OperatorFile":
    from omnigraph.config.operator_file import read_operator_file

    return read_operator_file(path, warnings)
