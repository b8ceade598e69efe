"""Which calls of a module could move a HEAD behind the storage package's back?

Python has no types at this point, so the guard goes by names. In a module that imports Lance every name of an
inline commit counts, whatever it is called on. In any other module there is no Lance object to call them on,
as long as it neither imports the library nor reaches into a handle, and these two are what counts there.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

ALLOW_COMMENT = "# forbidden-api-allow:"

INLINE_COMMITS = frozenset(
    {
        "write_dataset",
        "commit",
        "commit_batch",
        "delete",
        "update",
        "insert",
        "merge",
        "add_columns",
        "drop_columns",
        "alter_columns",
        "truncate_table",
        "create_index",
        "create_scalar_index",
        "restore",
        "compact_files",
        "optimize_indices",
        "cleanup_old_versions",
        "update_config",
        "update_schema_metadata",
        "update_field_metadata",
        "create_branch",
        "commit_existing_index_segments",
        "execute",
        "dataset",
    }
)
OPERATIONS = frozenset(
    {"Append", "Update", "Delete", "Merge", "Overwrite", "Restore", "CreateIndex", "Rewrite", "Project"}
)
LIBRARY_NAMES = frozenset({"LanceDataset", "LanceOperation", "write_dataset", "write_fragments"})


@dataclass(frozen=True, order=True, slots=True)
class Finding:
    """A forbidden name in a line of a module."""

    line: int
    name: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a module does that only allow-listed modules may do, and what a comment excuses."""

    findings: tuple[Finding, ...]
    excused: tuple[Finding, ...]


def examine(source: str, *, in_storage: bool) -> Report:
    """Return what is forbidden in a module, allow-listed or not."""
    tree = ast.parse(source)
    found = set(_in_storage(tree) if in_storage and _imports_lance(tree) else _elsewhere(tree, in_storage))
    lines = source.splitlines()
    excused = {finding for finding in found if ALLOW_COMMENT in lines[finding.line - 1]}
    return Report(tuple(sorted(found - excused)), tuple(sorted(excused)))


def _imports_lance(tree: ast.Module) -> bool:
    return any(name.partition(".")[0] == "lance" for _, name in _imported(tree))


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(str(module), names):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.Call(ast.Attribute(attr="import_module"), [ast.Constant(str(name)), *_]):
                yield node.lineno, name
            case ast.Call(ast.Name("__import__" | "import_module"), [ast.Constant(str(name)), *_]):
                yield node.lineno, name
            case _:
                pass


def _in_storage(tree: ast.Module) -> Iterator[Finding]:
    """Find every mention, called or not: an alias made now is called later."""
    unbound = _names_of_ours(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value, attr) if attr in INLINE_COMMITS and not _is_ours(value, unbound):
                yield Finding(node.lineno, attr)
            case ast.Attribute(_, attr) if attr in OPERATIONS:
                yield Finding(node.lineno, attr)
            case ast.ImportFrom(str(module), names) if module.partition(".")[0] == "lance":
                taken = INLINE_COMMITS | OPERATIONS
                yield from (Finding(node.lineno, alias.name) for alias in names if alias.name in taken)
            case ast.Call(ast.Name("getattr"), [_, ast.Constant(str(name)), *_]) if name in INLINE_COMMITS:
                yield Finding(node.lineno, name)
            case _:
                pass


def _names_of_ours(tree: ast.Module) -> frozenset[str]:
    """Return the modules of ours that a module imports; a function of theirs is no call of the library."""
    return frozenset(
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("omnigraph")
        for alias in node.names
    )


def _is_ours(value: ast.expr, ours: frozenset[str]) -> bool:
    return isinstance(value, ast.Name) and (value.id in ours or value.id == "self")


def _elsewhere(tree: ast.Module, in_storage: bool) -> Iterator[Finding]:
    for line, name in _imported(tree):
        if name.partition(".")[0] == "lance":
            yield Finding(line, name.partition(".")[0])
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value, "_dataset") if not in_storage and not _is_ours(value, frozenset()):
                yield Finding(node.lineno, "_dataset")
            case ast.Attribute(_, attr) if attr in LIBRARY_NAMES:
                yield Finding(node.lineno, attr)
            case ast.Name(name) if name in LIBRARY_NAMES:
                yield Finding(node.lineno, name)
            case _:
                pass


def unanchored(source: str) -> list[int]:
    """Return the lines of updates and deletes, built by hand or taken from a merge, that have no anchor."""
    lines = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        has_anchor = any(
            isinstance(node, ast.Call) and _called(node) == "with_anchor" for node in ast.walk(function)
        )
        lines += [
            node.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
            and _called(node) in {"Update", "Delete", "execute_uncommitted"}
            and not has_anchor
        ]
    return lines


def _called(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(_, attr):
            return attr
        case ast.Name(name):
            return name
        case _:
            return None


def committing_methods(class_source: str) -> list[str]:
    """Return the methods of a class whose name or body says that they commit."""
    [definition] = [node for node in ast.parse(class_source).body if isinstance(node, ast.ClassDef)]
    found = []
    for method in definition.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        mentions = {node.attr for node in ast.walk(method) if isinstance(node, ast.Attribute)} & (
            INLINE_COMMITS - {"dataset"}
        )
        if "commit" in method.name or mentions:
            found.append(method.name)
    return found
