"""Declarations for hostile names: a module that works with all of its properties, or a refusal."""

import dataclasses
import json
import sys
from collections.abc import Callable
from itertools import combinations
from types import ModuleType
from typing import Any

import pytest

from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.generate.python import python_module
from omnigraph.catalog.generate.shapes import shapes_of
from omnigraph.catalog.model import Catalog
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.graph.instances import instances
from omnigraph.operations.load.objects import objects_input

NAMES = (
    *("_", "__", "_x", "__x", "x", "x_", "_x_", "__x__", "___", "__a", "_a"),
    *("class", "class_", "_class", "none", "self", "cls", "str", "str_", "int", "type", "field", "field_"),
    *("model_a", "model_a_", "model_config", "model_dump", "model_validate_x", "model_fields", "model_extra"),
    *("copy", "json", "schema", "schema_", "dict", "validate", "construct", "fields"),
    *("__class__", "__init__", "__dict__", "__eq__", "__module__", "__annotations__", "__slots__", "__doc__"),
    *("__hash__", "__repr__", "__new__", "__weakref__", "__match_args__", "__dataclass_fields__"),
    *("__pydantic_fields__", "__pydantic_extra__", "__fields__", "__init_subclass__", "__set_name__"),
    *("_typing", "_datetime", "_pydantic", "_dataclasses", "_typing_", "_abc_impl", "_replace", "_asdict"),
)
WORDS = ("None", "True", "False")


Importer = Callable[[str], ModuleType]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Importer:
    """Import the text of a module."""

    def imported(text: str) -> ModuleType:
        module = ModuleType("declared")
        monkeypatch.setitem(sys.modules, "declared", module)  # where dataclasses look for it
        exec(compile(text, "declared", "exec"), vars(module))
        return module

    return imported


def of_text(text: str) -> Catalog:
    return compile_schema(Source(text))


def declared(catalog: Catalog, *, are_models: bool) -> str | BadRequest:
    try:
        return python_module(shapes_of(catalog), are_models=are_models)
    except BadRequest as error:
        return error


def of_names(names: tuple[str, ...]) -> Catalog:
    lines = "".join(f"    {name}: String?\n" for name in names)
    return of_text(f"node T {{\n    k_: String @key\n{lines}    at: DateTime?\n}}\n")


def attributes(kind: type) -> list[str]:
    """Return what the constructor calls the fields, in the order of the schema."""
    fields: Any = getattr(kind, "__pydantic_fields__", None)
    if fields is None:
        return [field.name for field in dataclasses.fields(kind)]
    return [info.alias or name for name, info in fields.items()]


def check(catalog: Catalog, kind: type) -> None:
    given = {
        "k_": "k",
        **{name: f"value of {name}" for name in catalog.nodes["T"].properties if name[-2:] != "k_"},
    }
    del given["at"]
    words = [name for name in attributes(kind) if name != "at"]
    declared = [name for name in catalog.nodes["T"].properties if name != "at"]
    values = [given[name] for name in declared]

    one = kind(**dict(zip(words, values, strict=True)))
    data = json.loads(bytes(objects_input(catalog, [one]).data))["data"]
    back: list[Any] = instances(kind, declared, [values])

    assert {name: value for name, value in data.items() if value is not None} == given
    assert back == [one]


@pytest.mark.case("surfaces", 764)
@pytest.mark.parametrize("are_models", [True, False], ids=["models", "dataclasses"])
def test_a_hostile_name_works_or_is_refused(made: Importer, are_models: bool) -> None:
    refused = []
    for name in NAMES:
        catalog = of_names((name,))
        text = declared(catalog, are_models=are_models)
        if isinstance(text, BadRequest):
            assert f"'{name}'" in str(text)
            refused.append(name)
        else:
            check(catalog, made(text).T)

    assert refused == ([] if are_models else ["__x", "__a"])


@pytest.mark.case("surfaces", 764)
@pytest.mark.parametrize("are_models", [True, False], ids=["models", "dataclasses"])
def test_two_hostile_names_work_or_are_refused(made: Importer, are_models: bool) -> None:
    refused = set()
    for pair in combinations(NAMES, 2):
        catalog = of_names(pair)
        text = declared(catalog, are_models=are_models)
        if isinstance(text, BadRequest):
            assert "ode of type T" in str(text)
            refused.add(pair)
        else:
            check(catalog, made(text).T)

    assert ("model_a", "model_a_") in refused
    assert ("class", "class_") in refused
    assert ("x", "x_") not in refused


@pytest.mark.case("surfaces", 764)
@pytest.mark.parametrize("are_models", [True, False], ids=["models", "dataclasses"])
@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_python_is_the_name_of_a_type(made: Importer, word: str, are_models: bool) -> None:
    catalog = of_text(f"node {word} {{\n    k: String @key\n}}\nedge {word}: {word} -> {word}\n")

    module = made(python_module(shapes_of(catalog), are_models=are_models))
    kind = getattr(module, f"{word}_")
    data = json.loads(bytes(objects_input(catalog, [kind(k="a")]).data))

    assert data == {"type": word, "data": {"k": "a"}}
    with pytest.raises(BadRequest, match=f"{word} and {word}_ would be one class"):
        python_module(
            shapes_of(of_text(f"node {word} {{ k: String }}\nnode {word}_ {{ k: String }}\n")),
            are_models=are_models,
        )
