"""Input for the file form of `embed`: which types get vectors, from which fields, and where files are.

    sources: {raw_seed: data/seed.jsonl}
    artifacts: {embedded_seed: build/seed.embedded.jsonl}
    embeddings:
      dimension: 384
      types:
        Craft: {target: embedding, fields: [name, purpose]}

S1  Paths in a manifest are relative to it.
S2  A manifest may contain other things; every member of `embeddings` must be known.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import VECTOR_DIMENSION_MAX
from omnigraph.core.values import read_json
from omnigraph.core.yaml_text import read_text, read_yaml

DEFAULT_OUTPUT = "./build/seed.embedded.jsonl"


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """The field that gets the vector of a record, and the fields whose values make its text."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """The dimension of vectors, and what is embedded, by type."""

    dimension: int
    types: Mapping[str, TypeSpec]


@dataclass(frozen=True, slots=True)
class Seed:
    """A manifest: the file to read, the file to write, and what is embedded."""

    input: Path
    output: Path
    spec: EmbedSpec


def read_seed(path: Path) -> Seed:
    """Return the content of a YAML manifest (S1, S2).

    Raises:
        BadRequest: it cannot be read, or does not say what to embed.
    """
    place = _SeedPlace(str(path))
    document = place.mapping(read_yaml(path))
    raw = place.path(document, "sources", "raw_seed") or place.path(document, "seed", "data")
    if raw is None:
        place.fail("'sources.raw_seed' or 'seed.data' must name the file to embed")
    output = place.path(document, "artifacts", "embedded_seed") or DEFAULT_OUTPUT
    if "embeddings" not in document:
        place.fail("'embeddings' must say what to embed")
    spec = _spec(document["embeddings"], _SeedPlace(f"{path}: embeddings"))
    return Seed(path.parent / raw, path.parent / output, spec)


def read_spec(path: Path) -> EmbedSpec:
    """Return the content of a JSON file with the members of `embeddings`.

    Raises:
        BadRequest: it cannot be read, or has other members.
    """
    try:
        given = read_json(read_text(path))
    except json.JSONDecodeError as error:
        raise BadRequest(f"{path}:{error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise BadRequest(f"{path}: {error}") from error
    return _spec(given, _SeedPlace(str(path)))


def _spec(given: object, place: "_SeedPlace") -> EmbedSpec:
    members = place.mapping(given, ("dimension", "types"))
    dimension = members.get("dimension")
    is_number = isinstance(dimension, int) and not isinstance(dimension, bool)
    if not isinstance(dimension, int) or not is_number or not 1 <= dimension <= VECTOR_DIMENSION_MAX:
        place.fail(f"'dimension' must be a number from 1 to {VECTOR_DIMENSION_MAX}")
    types = _SeedPlace(f"{place.name}: types").mapping(members.get("types"))
    if not types:
        place.fail("'types' must have at least one type")
    return EmbedSpec(dimension, {name: _type(name, given, place) for name, given in types.items()})


def _type(name: str, given: object, place: "_SeedPlace") -> TypeSpec:
    inner = _SeedPlace(f"{place.name}: {name}")
    members = inner.mapping(given, ("target", "fields"))
    target, fields = members.get("target"), members.get("fields")
    if not isinstance(target, str) or not target:
        inner.fail("'target' must be the name of the field for the vector")
    is_names = isinstance(fields, Sequence) and not isinstance(fields, str)
    names = [field for field in fields if isinstance(field, str)] if isinstance(fields, Sequence) else []
    if not isinstance(fields, Sequence) or not is_names or not names or len(names) != len(fields):
        inner.fail("'fields' must be a list with the name of at least one field")
    if target in names:
        inner.fail(f"'{target}' cannot be made from itself")
    return TypeSpec(target, tuple(names))


class _SeedPlace:
    """A part of a file, for errors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fail(self, message: str) -> NoReturn:
        raise BadRequest(f"{self.name}: {message}")

    def mapping(self, given: object, known: Sequence[str] | None = None) -> Mapping[str, object]:
        """Return an object; if names are given, with no others."""
        if not isinstance(given, Mapping):
            self.fail(f"expected an object{'' if known is None else ' with ' + ', '.join(known)}")
        for name in given:
            if not isinstance(name, str):
                self.fail(f"a name must be a text, not {name!r}")
            if known is not None and name not in known:
                self.fail(f"unknown member '{name}'; the members are {', '.join(known)}")
        return given

    def path(self, document: Mapping[str, object], section: str, name: str) -> str | None:
        """Return a path of a section, or `None` if it is not given."""
        members = document.get(section)
        if not isinstance(members, Mapping) or members.get(name) is None:
            return None
        found = members[name]
        if not isinstance(found, str) or not found:
            self.fail(f"'{section}.{name}' must be a path")
        return found
