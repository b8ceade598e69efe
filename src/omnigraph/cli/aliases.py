"""Aliases: short names for the queries of a project, and for stored queries on servers.

A project's alias hides an operator's of the same name.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.core.errors import BadRequest
from omnigraph.core.values import read_json

if TYPE_CHECKING:
    from omnigraph.config.configuration import Configuration
    from omnigraph.config.operator_file import OperatorAlias
    from omnigraph.config.project_file import ProjectAlias


def find_alias(name: str, configuration: "Configuration") -> "ProjectAlias | OperatorAlias":
    """Return an alias.

    Raises:
        BadRequest: there is none of that name; those that exist are listed.
    """
    defined: dict[str, ProjectAlias | OperatorAlias] = {}
    for file in (configuration.operator, configuration.project):
        if file is not None:
            defined |= file.aliases
    if name not in defined:
        raise BadRequest(f"no alias '{name}'; defined: {', '.join(sorted(defined)) or 'none'}")
    return defined[name]


def bound(
    alias: "ProjectAlias | OperatorAlias", words: Sequence[str], given: Mapping[str, object] | None
) -> dict[str, object]:
    """Return the parameters of a call: the alias's own, then its arguments, then those of `--params`.

    Raises:
        BadRequest: there are more arguments than the alias names.
    """
    if len(words) > len(alias.args):
        names = ", ".join(alias.args) or "none"
        raise BadRequest(
            f"alias '{alias.name}' takes {len(alias.args)} arguments ({names}), not {len(words)}"
        )
    by_place = {name: _value(word) for name, word in zip(alias.args, words, strict=False)}
    return {**alias.params, **by_place, **(given or {})}


def _value(word: str) -> object:
    """Return an argument: what it is as JSON, else the word itself."""
    try:
        return read_json(word)
    except ValueError:
        return word
