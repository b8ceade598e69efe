"""The seam of the tests lists what they replace in the engine, and nothing else is replaced."""

import ast
from collections.abc import Iterator

from tests.support.pages import REPOSITORY
from tests.support.seam import CALLS, CLOCKS, LIMITS, present

TESTS = REPOSITORY / "tests"
SEAM = TESTS / "support" / "seam.py"
LISTED = LIMITS | CLOCKS | CALLS


def test_every_listed_name_exists_and_is_used() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py") if path != SEAM)

    assert [name for name in sorted(LISTED) if not present(name)] == []
    assert [name for name in sorted(LISTED) if f'"{name}"' not in sources] == []
    assert not present("omnigraph.graph.graph.NOTHING")


def test_no_test_reaches_below_a_graph_by_itself() -> None:
    found = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in TESTS.rglob("*.py")
        if path != SEAM
        for name in reached(path.read_text(encoding="utf-8"))
    ]

    assert found == []


def test_what_reaches_below_is_noticed() -> None:
    assert [*reached("graph._graph.parts")] == ["._graph"]
    assert [*reached("from omnigraph.commit import publish\nm.setattr(publish, 'X', 1)")] == ["publish"]
    assert [*reached("m.setattr('omnigraph.commit.publish.X', 1)")] == ["omnigraph.commit.publish.X"]
    assert [*reached("import os\nm.setattr(os, 'fsync', f)")] == []


def reached(text: str) -> Iterator[str]:
    """Yield what a test takes from a handle, or replaces in the engine, without the seam."""
    module = ast.parse(text)
    ours = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("omnigraph")
        for alias in node.names
    }
    for node in ast.walk(module):
        match node:
            case ast.Attribute(attr="_graph"):
                yield "._graph"
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Name(id=name), *_]) if name in ours:
                yield name
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(name)), *_]) if (
                name.startswith("omnigraph.")
            ):
                yield name
            case _:
                pass
