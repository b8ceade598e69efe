"""The catalog of failpoints: the engine uses every name and no other, and every name is in a test.

Also what the actions do: tests rely on them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.core.errors import RowLevelCasContention
from omnigraph.core.failpoint import CATALOG, ENVIRONMENT, EXIT_STATUS, InjectedFault, failpoint, hit
from tests.support.system import Script

PROJECT = Path(__file__).parents[2]
ENGINE = PROJECT / "src" / "omnigraph"
CATALOG_FILE = ENGINE / "core" / "failpoint.py"
NAME = "write.post_table_commit"


def test_the_engine_uses_every_name_and_no_other() -> None:
    used = {name for path in _sources(ENGINE, CATALOG_FILE) for name in _places(_parse(path))}

    assert used - CATALOG == set(), "not in the catalog"
    assert CATALOG - used == set(), "in the catalog, but nowhere in the engine"


def test_every_name_is_in_a_test() -> None:
    texts = [
        text for path in _sources(PROJECT / "tests", Path(__file__)) for text in _constants(_parse(path))
    ]
    named = set(re.findall(r"[a-z_0-9]+(?:\.[a-z_0-9]+)+", "\n".join(texts)))

    assert CATALOG - named == set()


def test_the_guard_sees_every_way_to_name_a_place() -> None:
    tree = ast.parse("""
hit("a.one")
hit("a.two" if x else "a.three")
FailpointNames(post_table="a.four", pre_publish=None)
_FAILPOINTS = {"staged": "a.five"}
_FAILPOINTS: dict[str, str] = {"table": "a.six"}
hit(names.post)
""")

    assert set(_places(tree)) == {"a.one", "a.two", "a.three", "a.four", "a.five", "a.six"}


# Actions


def test_without_anything_armed_a_place_does_nothing() -> None:
    hit(NAME)
    hit("no such place")


def test_raise_once_and_a_number_of_times() -> None:
    with failpoint(NAME, "raise:once"):
        with pytest.raises(InjectedFault, match=NAME):
            hit(NAME)
        hit(NAME)
    with failpoint(NAME, "raise:2"):
        for _ in range(2):
            with pytest.raises(InjectedFault):
                hit(NAME)
        hit(NAME)
    with failpoint(NAME, "skip:2,raise"):
        hit(NAME)
        hit(NAME)
        for _ in range(2):
            with pytest.raises(InjectedFault):
                hit(NAME)


def test_call_contention_and_delay() -> None:
    calls: list[int] = []
    with failpoint(NAME, "skip:1,call", lambda: calls.append(1)):
        hit(NAME)
        assert calls == []
        hit(NAME)
    assert calls == [1]
    with failpoint(NAME, "contention"), pytest.raises(RowLevelCasContention):
        hit(NAME)
    with failpoint(NAME, "delay:0"):
        hit(NAME)


def test_a_place_is_disarmed_whatever_happens() -> None:
    with pytest.raises(InjectedFault), failpoint(NAME, "raise"):
        hit(NAME)
    hit(NAME)


def test_an_unknown_name_or_action_is_a_mistake_of_the_test() -> None:
    with pytest.raises(AssertionError, match="unknown failpoint"), failpoint("no.such_place", "raise"):
        pass
    with failpoint(NAME, "explode"), pytest.raises(AssertionError, match="unknown failpoint action"):
        hit(NAME)


@pytest.mark.parametrize(
    ("setting", "status"),
    [("", 0), (f"{NAME}=exit", EXIT_STATUS), (f"{NAME}=skip:1,exit", 0), ("no.such_place=exit", 1)],
)
def test_a_process_is_armed_by_its_environment(setting: str, status: int) -> None:
    program = f"""
import sys
sys.stderr = sys.stdout
from omnigraph.core.failpoint import hit
hit("{NAME}")
"""
    with Script(program, **{ENVIRONMENT: setting}) as script:
        assert script.wait() == status


def _sources(folder: Path, *left_out: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.py")) if path not in left_out]


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _places(tree: ast.Module) -> Iterator[str]:
    """Yield the names that code passes to `hit`, directly or by a table of names."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("hit" | "FailpointNames"), args=arguments, keywords=keywords):
                for argument in (*arguments, *(keyword.value for keyword in keywords)):
                    yield from _strings(argument)
            case ast.Assign(targets=[ast.Name(name)], value=ast.Dict() as table) if "FAILPOINTS" in name:
                for value in table.values:
                    yield from _strings(value)
            case ast.AnnAssign(target=ast.Name(name), value=ast.Dict() as table) if "FAILPOINTS" in name:
                for value in table.values:
                    yield from _strings(value)


def _strings(expression: ast.expr) -> Iterator[str]:
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield expression.value
    elif isinstance(expression, ast.IfExp):
        yield from _strings(expression.body)
        yield from _strings(expression.orelse)


def _constants(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
