"""What a page of documentation names, and whether it is there: paths, targets of make, names of Python.

N1  A path is looked for beside the page, in the repository and in `src/omnigraph`. Inline code is a path if
    it ends in a slash or in the suffix of a source file, or if its first part is a folder of these places.
N2  Paths below the root of a graph (`__recovery`) and those with a placeholder (`<id>`) are not looked for.
N3  A sentence, or a row of a table, that calls something unbuilt must not name a verb that exists.
"""

import ast
import importlib
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import click

from omnigraph.cli.main import omnigraph
from omnigraph.graph.entity_reads import EntityReads
from omnigraph.graph.graph import Graph

_FENCED = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
_CODE = re.compile(r"(?<!`)`(?!`)([^`]+)`")
_SUFFIX = re.compile(r"[\w.*/-]+\.(?:py|pyi|md|toml|lock|sh)")
_PATH = re.compile(r"[\w.*/-]+")
_DOTTED = re.compile(
    r"(?<![\w/.-])omnigraph(?!\.yaml\b)(?:\.[A-Za-z_]\w*)+(?![\w/-])"
)  # no file of a project
_MADE = re.compile(r"(?:^|[\s;&(])make\s+([a-z][a-z-]*)")
_MEMBER = re.compile(r"([A-Z]\w*[a-z]\w*)\.([a-z]\w*)(?:\(.*\))?")
_IDENTIFIER = re.compile(r"(?:[a-z]\w*_\w+|[A-Z][a-z]+(?:[A-Z][a-z]+)+)(?:\(\))?")
_UNBUILT = re.compile(
    r"\b(?:not (?:yet )?(?:built|there|implemented)|planned|do(?:es)? not exist|to come"
    r"|(?:to be|being) built)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.:;!?])\s+(?=[A-Z`*\[(])|\n\s*\n|\n(?=\s*(?:[-|]|\d+[.)])\s)")
# Verbs whose names are everyday words of these pages: said of the verb only where they are code.
_EVERYDAY = frozenset(
    {
        *("at", "branch", "branches", "catalog", "changes", "close", "commit", "commits", "index", "query"),
        *("schema", "server", "snapshot", "table", "uri", "version"),
    }
)


def spans(text: str) -> Iterator[str]:
    """Yield the inline code of a page."""
    for match in _CODE.finditer(_FENCED.sub("", text)):
        yield " ".join(match[1].split())


def missing_paths(text: str, roots: Collection[Path]) -> list[str]:
    """Return the paths of a page's inline code that none of the roots has (N1, N2)."""
    return [span for span in spans(text) if _is_path(span, roots) and not _is_there(span, roots)]


def _is_path(span: str, roots: Collection[Path]) -> bool:
    name = span.partition("::")[0]
    if not _PATH.fullmatch(name) or name.startswith(("__", "_", ".", "/", "-")) or "//" in name:
        return False
    first = name.partition("/")[0]
    return bool(
        _SUFFIX.fullmatch(name)
        or name.endswith("/")
        or ("/" in name and any((root / first).is_dir() for root in roots))
    )


def _is_there(span: str, roots: Collection[Path]) -> bool:
    name, _, test = span.partition("::")
    name = name.rstrip("/")
    if "/" not in name and "." in name:
        found = [path for root in roots for path in (root / name,) if path.exists()]
        found = found or [path for root in roots if root.name == "omnigraph" for path in root.rglob(name)]
    elif "*" in name:
        found = [path for root in roots for path in root.glob(name)]
    else:
        found = [root / name for root in roots if _has_content(root / name)]
    return bool(found) and (not test or any(f"def {test}(" in path.read_text() for path in found))


def _has_content(path: Path) -> bool:
    """Return whether a path is a file, or a folder with files: what compiled modules leave does not count."""
    if not path.is_dir():
        return path.exists()
    return any(file.is_file() and file.suffix != ".pyc" for file in path.rglob("*"))


def missing_targets(text: str, targets: Collection[str]) -> list[str]:
    """Return what a page makes, in its code and its shell blocks, and the Makefile does not."""
    shown = [match["text"] for match in _FENCED.finditer(text) if match["language"] == "sh"]
    made = [name for span in (*spans(text), *shown) for name in _MADE.findall(span)]
    return [name for name in made if name not in targets]


def missing_names(text: str) -> list[str]:
    """Return the dotted names of the package on a page, in prose or blocks, that cannot be imported."""
    found = {match[0] for match in _DOTTED.finditer(text)}
    return sorted(name for name in found if not _resolves(name))


def _resolves(dotted: str) -> bool:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            if not hasattr(value, name):
                return False
            value = getattr(value, name)
        return True
    return False


def missing_members(text: str, members: Mapping[str, Collection[str]]) -> list[str]:
    """Return `Class.name` of a page's inline code where the class is ours and has no such name."""
    return [
        span
        for span in spans(text)
        if (match := _MEMBER.fullmatch(span)) and match[1] in members and match[2] not in members[match[1]]
    ]


def missing_identifiers(text: str, words: Collection[str]) -> list[str]:
    """Return the identifiers of a page's inline code that no source file has as a word."""
    return [
        span for span in spans(text) if _IDENTIFIER.fullmatch(span) and span.removesuffix("()") not in words
    ]


def contradictions(text: str, verbs: Collection[str]) -> list[str]:
    """Return the sentences of a page that call something unbuilt and name a verb that exists (N3)."""
    prose = _FENCED.sub("\n\n", text)
    return [
        " ".join(sentence.split())
        for sentence in _SENTENCE.split(prose)
        if sentence and _UNBUILT.search(sentence) and _names_a_verb(sentence, verbs)
    ]


def _names_a_verb(sentence: str, verbs: Collection[str]) -> bool:
    code = {" ".join(span.split()).removeprefix("omnigraph ") for span in _CODE.findall(sentence)}
    plain = sentence.replace("`", "").lower()
    return any(
        verb in code
        or (verb not in _EVERYDAY and re.search(rf"\b{re.escape(verb)}(?:s|es|d|ed)?\b", plain) is not None)
        for verb in verbs
    )


@cache
def built_verbs() -> frozenset[str]:
    """Return what users can do today: the commands of the program, and the public names of `Graph`."""
    methods = {name for name in {**vars(EntityReads), **vars(Graph)} if not name.startswith("_")}
    return frozenset(methods) | frozenset(_commands(click.Context(omnigraph), omnigraph, ""))


def _commands(context: click.Context, command: click.Command, above: str) -> Iterator[str]:
    assert isinstance(command, click.Group)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        yield f"{above}{name}"
        if isinstance(below, click.Group):
            yield from _commands(click.Context(below, parent=context), below, f"{above}{name} ")


def targets_of(makefile: str) -> frozenset[str]:
    """Return the targets of a Makefile."""
    return frozenset(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def members_of(folder: Path) -> dict[str, frozenset[str]]:
    """Return the names that the classes below a folder define, by class."""
    found: dict[str, frozenset[str]] = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name] = found.get(node.name, frozenset()) | frozenset(_defined(node))
    return found


def _defined(node: ast.ClassDef) -> Iterator[str]:
    for item in ast.walk(node):
        match item:
            case ast.FunctionDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield name
            case _:
                pass


def words_of(folders: Collection[Path]) -> frozenset[str]:
    """Return every word of the source files below some folders."""
    paths = [path for folder in folders for path in folder.rglob("*.py*") if path.suffix in {".py", ".pyi"}]
    return frozenset(word for path in paths for word in re.findall(r"\w+", path.read_text(encoding="utf-8")))
