"""The reference page of the Python API: signatures from the source, texts from the docstrings.

What a public name hands out belongs to the page as well: the classes in its annotations are followed.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from typing import is_typeddict

import omnigraph
from omnigraph.core.errors import OmnigraphError

WIDTH = 100
HEAD = """\
# Python

Generated from the code; `pytest tests/surfaces/docs --accept` rewrites it. `import omnigraph as og` has every
name of the first sections; [surfaces, section 3](../spec/surfaces.md) has the rules that they share, and the
[guide](../guide/README.md) shows them at work. The classes of the last section are what results consist of:
programs get them and need not import them.
"""
_WORD = re.compile(r"[A-Za-z_]\w*")
# The engine below a Graph: what its objects hold is not for programs, but for these.
_ENGINE = ("storage", "plan", "exec", "history", "staging", "catalog.bound", "operations.context")
_HANDED_OUT = frozenset({"TableEntry", "PublishedPin", "TableIdentity"})

Words = frozenset[tuple[str, str]]  # of annotations, each with the module in which it stands


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the page with its text, and the words in the annotations below it."""

    text: str
    words: Words


def render() -> str:
    """Return the whole page."""
    names = [name for name in omnigraph.__dir__() if not name.startswith("__") and not name.isupper()]
    public = {name: getattr(omnigraph, name) for name in sorted(names)}
    functions = [_function(name, value) for name, value in public.items() if inspect.isfunction(value)]
    classes = {name: value for name, value in public.items() if isinstance(value, type)}
    errors = {name: value for name, value in classes.items() if issubclass(value, Exception)}
    values = {name: value for name, value in classes.items() if name not in errors}
    handles = [name for name in values if name in {"Graph", "SnapshotView", "Result"}]
    first = [_class(name, values.pop(name)) for name in handles]
    others = [_class(name, value) for name, value in values.items()]
    aliases = {
        name: value for name, value in public.items() if name not in classes and not inspect.isfunction(value)
    }
    parts, unions = _reached([*functions, *first, *others], {*public})
    lines = [HEAD, "## Functions\n", *(one.text for one in functions)]
    lines += ["## Handles and results of reads\n", *(one.text for one in first)]
    lines += ["## What calls return\n", *(one.text for one in others)]
    lines += [f"### {name}\n\n`{str(value).replace('typing.', '')}`\n" for name, value in aliases.items()]
    lines += ["## Errors\n", _errors(errors)]
    lines += ["## What these consist of\n", *(_class(name, value).text for name, value in parts.items())]
    lines += ["### Types with a name\n", *(f"- `{name}` = `{text}`" for name, text in unions.items()), ""]
    return "\n".join(lines)


def undocumented(page: str) -> list[str]:
    """Return what is on a page without a word about it."""
    return re.findall(r"^#{3,4} (.+)\n+(?:```python\n(?:(?!```).*\n)*```\n+)?(?=#|\||\Z)", page, re.MULTILINE)


# Functions and classes


def _function(name: str, function: Callable[..., object], *, level: int = 3, owner: str = "") -> Section:
    node = _node(inspect.unwrap(function))
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef), name
    signature, words = _signature(node, owner)
    options = "".join(f"\n\n{line}" for line in _keywords(node, function.__module__))
    text = f"{'#' * level} {f'{owner}.{name}' if owner else name}\n\n```python\n{signature}\n```\n\n"
    return Section(f"{text}{_prose(function)}{options}\n", _words(function.__module__, words))


def _class(name: str, value: type) -> Section:
    """Return a class with its fields, properties and methods, those of its bases included."""
    text, words = [f"### {name}\n", _prose(value), ""], set[tuple[str, str]]()
    if issubclass(value, Enum):
        text += ["\n".join(f"- `{member.name}` = `{member.value!r}`" for member in value), ""]
        return Section("\n".join(text), frozenset())
    fields = list(_fields(value)) if is_dataclass(value) else []
    if fields:
        text += ["| Field | Type |", "|---|---|"]
        text += [f"| `{field}` | `{type_.replace('|', chr(92) + '|')}` |" for field, type_ in fields]
        text.append("")
        words |= _words(value.__module__, " ".join(type_ for _, type_ in fields))
    for member, found in _members(value):
        if isinstance(found, property):
            assert found.fget is not None
            node = _node(found.fget)
            assert isinstance(node, ast.FunctionDef)
            type_ = _annotation(node.returns)
            words |= _words(found.fget.__module__, type_)
            text += [f"#### {name}.{member}\n", f"```python\n{member}: {type_}\n```\n", f"{_prose(found)}\n"]
        else:
            section = _function(member, found, level=4, owner=name)
            words |= section.words
            text.append(section.text)
    return Section("\n".join(text), frozenset(words))


def _members(value: type) -> Iterator[tuple[str, property | Callable[..., object]]]:
    """Yield public methods and properties of ours, in the order of the source, the class's own first."""
    seen = set[str]()
    for base in value.__mro__:
        if not base.__module__.startswith("omnigraph"):
            continue
        for name, found in vars(base).items():
            raw = found.__func__ if isinstance(found, staticmethod | classmethod) else found
            if (
                name.startswith("_")
                or name in seen
                or not (isinstance(raw, property) or inspect.isfunction(raw))
            ):
                continue
            seen.add(name)
            yield name, raw


def _fields(value: type) -> Iterator[tuple[str, str]]:
    node = _node(value)
    assert isinstance(node, ast.ClassDef)
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            name = item.target.id
            if not name.startswith("_"):
                yield name, _annotation(item.annotation)


def _errors(errors: dict[str, type[Exception]]) -> str:
    """Return the tree of errors, each with what it is and what it carries."""
    lines = ["[errors.md](errors.md) has their codes, statuses and exit codes.\n"]

    def below(value: type[Exception], depth: int) -> None:
        doc = _prose(value).split("\n\n")[0].replace("\n", " ")
        own = _kept(value)
        fields = f" Fields: {', '.join(f'`{name}`' for name in own)}." if own else ""
        lines.append(f"{'  ' * depth}- **`{value.__name__}`** {doc}{fields}")
        children = [one for one in errors.values() if value in one.__bases__]
        for child in sorted(children, key=lambda one: one.__name__):
            below(child, depth + 1)

    below(OmnigraphError, 0)
    return "\n".join(lines) + "\n"


def _kept(value: type[Exception]) -> list[str]:
    """Return the attributes that an error has besides its text."""
    makers = [vars(base)["__init__"] for base in value.__mro__ if "__init__" in vars(base)]
    if not inspect.isfunction(makers[0]):
        return []
    stored = [
        node.attr
        for node in ast.walk(_node(makers[0]))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    return [name for name in dict.fromkeys(stored) if not name.startswith("_")]


def _reached(sections: list[Section], known: set[str]) -> tuple[dict[str, type], dict[str, str]]:
    """Return the classes of ours that annotations lead to, and the unions that have a name."""
    classes: dict[str, type] = {}
    unions: dict[str, str] = {}
    waiting = list(sections)
    while waiting:
        for module, word in waiting.pop().words:
            if word in known or word in classes or word in unions:
                continue
            value, home = _resolved(module, word), _home(module, word)
            if isinstance(value, type):
                if _is_handed_out(value):
                    classes[word] = value
                    waiting.append(_class(word, value))
            elif value is not None and word[0].isupper():
                unions[word] = _written(home, word)
                waiting.append(Section("", _words(home, unions[word])))
    return dict(sorted(classes.items())), dict(sorted(unions.items()))


def _is_handed_out(value: type) -> bool:
    home = value.__module__
    is_engine = home.startswith(tuple(f"omnigraph.{name}" for name in _ENGINE))
    is_ours = home.startswith("omnigraph.") and not value.__name__.startswith("_") and not is_typeddict(value)
    return is_ours and (not is_engine or value.__name__ in _HANDED_OUT)


def _words(module: str, text: str) -> Words:
    return frozenset((module, word) for word in _WORD.findall(text))


# Source


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


@cache
def _imports(module: str) -> dict[str, str]:
    """Return where a module gets its names from, those for type checkers included."""
    return {
        name.asname or name.name: node.module
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for name in node.names
    }


def _home(module: str, word: str) -> str:
    """Return the module that defines a name, through every module that only passes it on."""
    while module.startswith("omnigraph") and word in _imports(module):
        module = _imports(module)[word]
    return module


def _resolved(module: str, word: str) -> object:
    home = _home(module, word)
    return getattr(importlib.import_module(home), word, None) if home.startswith("omnigraph") else None


def _written(module: str, name: str) -> str:
    """Return what a name stands for, as its module writes it."""
    for node in ast.walk(_tree(module)):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if (
            isinstance(target, ast.Name)
            and target.id == name
            and isinstance(node, ast.Assign | ast.AnnAssign)
        ):
            return _annotation(node.value)
    return name


def _node(value: Callable[..., object] | type) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str) -> tuple[str, str]:
    """Return a signature as it is written, without quotes around annotations, and its words."""
    arguments = node.args
    shown = [_argument(one) for one in (*arguments.posonlyargs, *arguments.args)]
    for place, default in enumerate(reversed(arguments.defaults), 1):
        shown[-place] += f" = {ast.unparse(default)}"
    if arguments.vararg is not None:
        shown.append(f"*{_argument(arguments.vararg)}")
    elif arguments.kwonlyargs:
        shown.append("*")
    for one, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        shown.append(_argument(one) + ("" if given is None else f" = {ast.unparse(given)}"))
    if arguments.kwarg is not None:
        shown.append(f"**{_argument(arguments.kwarg)}")
    if owner and shown and shown[0] in {"self", "cls"}:
        shown = shown[1:]
    returned = "" if node.returns is None else f" -> {_annotation(node.returns)}"
    line = f"{node.name}({', '.join(shown)}){returned}"
    if len(line) > WIDTH:
        line = f"{node.name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){returned}"
    every = [_annotation(one.annotation) for one in ast.walk(arguments) if isinstance(one, ast.arg)]
    if any("contextmanager" in ast.unparse(one) for one in node.decorator_list):
        line = f"async with {line}" if isinstance(node, ast.AsyncFunctionDef) else f"with {line}"
    elif isinstance(node, ast.AsyncFunctionDef):
        line = f"await {line}"
    return line, " ".join([*every, returned])


def _argument(argument: ast.arg) -> str:
    type_ = _annotation(argument.annotation)
    return f"{argument.arg}: {type_}" if type_ else argument.arg


def _annotation(node: ast.expr | None) -> str:
    if node is None:
        return ""
    return re.sub(r"'((?:[\w.\[\], |])+)'", _unquoted, ast.unparse(node))


def _unquoted(found: "re.Match[str]") -> str:
    """Return a forward reference without its quotes; a literal keeps them."""
    return found[1] if found[1][:1].isupper() or "|" in found[1] or "[" in found[1] else found[0]


def _keywords(node: ast.FunctionDef | ast.AsyncFunctionDef, module: str) -> Iterator[str]:
    """Yield the keywords that a dictionary type stands for."""
    if node.args.kwarg is None:
        return
    type_ = _annotation(node.args.kwarg.annotation)
    name = type_.removeprefix("Unpack[").removesuffix("]")
    found = _resolved(module, name)
    if isinstance(found, type):
        fields = ", ".join(f"`{field}`" for field, _ in _fields(found))
        yield f"Options: {fields}."


def _prose(value: object) -> str:
    """Return a docstring as Markdown: what it raises becomes a list."""
    text = inspect.getdoc(value) or ""
    before, raises, listed = text.partition("Raises:\n")
    if not raises:
        return text
    items = re.split(r"\n(?=    \S)", textwrap.indent(textwrap.dedent(listed), "    "))
    lines = [" ".join(item.split()) for item in items if item.strip()]
    shown = [re.sub(r"^([\w, ]+):", lambda found: _codes(found[1]) + ":", line) for line in lines]
    return before.rstrip() + "\n\nRaises:\n\n" + "\n".join(f"- {line}" for line in shown)


def _codes(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))
