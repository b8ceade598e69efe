"""What must hold for the repository as a whole."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import REPOSITORY

PACKAGE = REPOSITORY / "src" / "omnigraph"
LINES_MAX = 700  # a file this long holds a second idea

# Written so that they do not match themselves.
MACHINE_PATH = re.compile(r"(?<![\w.~}-])/(?:home|Users|root|work|mnt)/\w")
INDEX_ADDRESS = re.compile(r"pypi\.org/|pythonhosted\.org|--(?:extra-)?index-url[ =]|--find-links[ =]")


def published_files() -> list[Path]:
    """Return the files that are in git, or would be after `git add`."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
        text=True,
    )
    return [path for name in listing.stdout.split("\0") if name and (path := REPOSITORY / name).is_file()]


def test_no_file_names_a_machine_or_a_package_index() -> None:
    files = published_files()

    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:100]}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="ignore").splitlines(), 1)
        if MACHINE_PATH.search(line) or INDEX_ADDRESS.search(line)
    ]

    assert Path(__file__) in files
    assert found == []


@pytest.mark.parametrize("name", ["build.lock", "requirements.lock"])
def test_a_lock_holds_exact_versions_with_hashes_and_no_address(name: str) -> None:
    text = (REPOSITORY / name).read_text()

    requirements = text.replace("\\\n", "").splitlines()

    exact = re.compile(r"[a-z0-9-]+==[\w.+!]+( ; [^\\]+?)?(\s+--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in requirements if not exact.fullmatch(line)] == []
    assert "://" not in text


def test_the_lock_covers_every_declared_dependency() -> None:
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    project = declared["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    groups += declared["dependency-groups"].values()

    names = {re.split(r"[\[<>=!~ ]", line)[0].replace(".", "-").lower() for group in groups for line in group}

    locked = re.findall(r"^[a-z0-9-]+(?===)", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    assert names - set(locked) == set()


def test_no_source_file_is_too_long() -> None:
    written = PACKAGE / "client" / "asynchronous"  # by tests/support/async_source.py
    paths = (path for path in PACKAGE.rglob("*.py") if path.parent != written)
    lengths = {path: len(path.read_text().splitlines()) for path in paths}

    assert lengths
    assert {str(path): length for path, length in lengths.items() if length > LINES_MAX} == {}


def test_every_package_has_its_place_in_the_import_contract() -> None:
    tools = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]
    layers = next(c["layers"] for c in tools["importlinter"]["contracts"] if c["type"] == "layers")

    listed = {name.strip(" ()") for layer in layers for name in re.split(r"[|:]", layer)}

    packages = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert packages
    assert packages - listed == set()


def test_every_package_has_an_init_file() -> None:
    """A directory without one is skipped by the import contract, and by the wheel's users."""
    directories = {path.parent for path in PACKAGE.rglob("*.py")}

    assert {str(path) for path in directories if not (path / "__init__.py").is_file()} == set()


def test_no_two_classes_or_aliases_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for name in top_level_types(path.read_text(encoding="utf-8")):
            homes.setdefault(name, []).append(str(path.relative_to(PACKAGE)))

    assert homes["Graph"] == ["graph/graph.py"]
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def top_level_types(text: str) -> set[str]:
    """Return the public classes, aliases and type variables that a module defines."""
    module = ast.parse(text)
    blocks = [module.body, *(node.body for node in module.body if isinstance(node, ast.If))]
    found = set()
    for statement in (statement for block in blocks for statement in block):
        match statement:
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                if name[0].isupper() and not name.isupper():
                    found.add(name)
            case _:
                pass
    return {name for name in found if not name.startswith("_")}


def test_no_module_gives_a_name_twice() -> None:
    """A second value under one name replaces the first where nobody looks."""
    twice = []
    for path in sorted((REPOSITORY / "src").rglob("*.py")):
        given: list[str] = []
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets += [node.target] if isinstance(node, ast.AnnAssign) else []
            given += [
                part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
            ]
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                given.append(node.name)
        twice += [f"{path.name}: {name}" for name in sorted({*given}) if given.count(name) > 1]

    assert twice == []
