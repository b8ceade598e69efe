"""What the package imports that is neither its own nor Python's: names of modules, with a file that does."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

_OF_TYPE_CHECKERS = {"_typeshed"}  # exists for them alone
_BY_NAME = "extra"  # the function that imports a library of an extra


def third_party_imports(package: Path) -> dict[str, str]:
    """Return every module that is imported, wherever in a file that stands, and one file that does it."""
    known = {*sys.stdlib_module_names, *_OF_TYPE_CHECKERS, package.name}
    return {
        module: path.relative_to(package.parent).as_posix()
        for path in sorted(package.rglob("*.py"))
        for module in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if module.partition(".")[0] not in known
    }


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (name.name for name in names)
            case ast.ImportFrom(str(module), names, 0):
                yield module
            case ast.Call(ast.Name(name), [ast.Constant(str(library)), *_]) if name == _BY_NAME:
                yield library
