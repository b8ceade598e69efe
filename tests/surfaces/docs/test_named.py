"""The pages about the code name what is there, and call nothing unbuilt that is built."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.named_things import (
    built_verbs,
    contradictions,
    members_of,
    missing_identifiers,
    missing_members,
    missing_names,
    missing_paths,
    missing_targets,
    targets_of,
    words_of,
)
from tests.support.pages import DOCS, REPOSITORY, Block, blocks, name_of

PACKAGE = REPOSITORY / "src" / "omnigraph"
INTERNALS = sorted((DOCS / "internals").rglob("*.md"))
ABOUT_THE_CODE = [
    *INTERNALS,
    DOCS / "reference" / "glossary.md",
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "tests" / "README.md",
    REPOSITORY / "README.md",
]
# Specifications describe what is to be built as well; the reference of the commands is generated.
EVERYWHERE = [page for page in {*ABOUT_THE_CODE, *DOCS.rglob("*.md")} if page.parent != DOCS / "spec"]
ARCHITECTURE = DOCS / "internals" / "architecture.md"
STYLE_EXAMPLES = {"rows_max", "timeout_s"}  # of names, in CONTRIBUTING.md


def text_of(page: Path) -> str:
    """Return the text of a page."""
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ABOUT_THE_CODE, ids=name_of)
def test_every_path_that_a_page_names_is_on_the_disk(page: Path) -> None:
    assert missing_paths(text_of(page), (page.parent, REPOSITORY, PACKAGE)) == []


@pytest.mark.parametrize("page", ABOUT_THE_CODE, ids=name_of)
def test_everything_that_a_page_makes_is_a_target(page: Path) -> None:
    assert missing_targets(text_of(page), targets_of(text_of(REPOSITORY / "Makefile"))) == []


@pytest.mark.parametrize("page", sorted(EVERYWHERE), ids=name_of)
def test_every_dotted_name_of_the_package_exists(page: Path) -> None:
    assert missing_names(text_of(page)) == []


def test_every_member_and_identifier_that_a_page_names_is_in_the_source() -> None:
    members, words = members_of(PACKAGE), words_of([PACKAGE, REPOSITORY / "tests", REPOSITORY / "bench"])

    missing = {
        name_of(page): [*missing_members(text_of(page), members), *missing_identifiers(text_of(page), words)]
        for page in ABOUT_THE_CODE
    }

    assert {page: names for page, names in missing.items() if set(names) - STYLE_EXAMPLES} == {}


@pytest.mark.parametrize("page", sorted(EVERYWHERE), ids=name_of)
def test_nothing_that_is_built_is_called_unbuilt(page: Path) -> None:
    assert contradictions(text_of(page), built_verbs()) == []


def test_the_tree_of_the_architecture_has_every_package_and_no_other() -> None:
    (tree,) = (block for block in architecture("text") if "core/" in block.text)
    folders, path = set[str](), list[str]()

    for line in tree.text.splitlines():
        name, depth = line.split()[0], (len(line) - len(line.lstrip())) // 2
        path[depth:] = [name.rstrip("/")]
        if name.endswith("/"):
            folders.add("/".join(path))
        else:
            assert (PACKAGE / "/".join(path)).is_file(), name

    on_disk = {file.parent.relative_to(PACKAGE).as_posix() for file in PACKAGE.glob("*/**/__init__.py")}
    assert folders == on_disk


def test_the_layers_of_the_architecture_are_those_that_are_checked() -> None:
    (shown,) = (block for block in architecture("text") if block.text.startswith("cli | spark"))
    contracts = tomllib.loads(text_of(REPOSITORY / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")

    assert shown.text.splitlines() == layers


def architecture(language: str) -> list[Block]:
    """Return the blocks of the architecture in a language."""
    return [block for block in blocks(ARCHITECTURE) if block.language == language]


# The checks can fail: each is given a page with something stale on it.

ROOTS = (DOCS / "internals", REPOSITORY, PACKAGE)


@pytest.mark.parametrize(
    "stale",
    [
        "`history/upgrades.py`",
        "`commit/write.py`, `commit/knives.py`",
        "`mcp_server/`",
        "`storage/manifest`",
        "`src/omnigraph/storage/table.py`",
        "`tests/s3`",
        "`finalizer.py`",
        "`language/parse_*.py`",
        "`tests/unit/test_repository.py::test_that_nobody_wrote`",
    ],
)
def test_a_stale_path_is_found(stale: str) -> None:
    assert len(missing_paths(f"It is kept by {stale}.", ROOTS)) == 1


@pytest.mark.parametrize(
    "fine",
    [
        "`commit/write.py`",
        "`storage/tables/`",
        "`tests/engine`",
        "`language/format_*.py`",
        "`__recovery/<id>.lock`",
        "`review/june`",
        "`application/json`",
        "```text\nserver/app.py\n```",
    ],
)
def test_what_exists_or_is_no_path_of_ours_passes(fine: str) -> None:
    assert missing_paths(f"It is kept by {fine}", ROOTS) == []


def test_a_stale_target_is_found_in_prose_and_in_a_shell_block() -> None:
    page = "Run `make\nportraits`, then:\n\n```sh\nmake test\nmake tea\n```\n"

    assert missing_targets(page, {"test"}) == ["portraits", "tea"]


def test_a_stale_name_of_the_package_is_found() -> None:
    page = (
        "`omnigraph.open` and `omnigraph.core.failpoint`, not `omnigraph.core.handler` or `omnigraph.Handle`"
    )

    assert missing_names(page) == ["omnigraph.Handle", "omnigraph.core.handler"]


def test_a_stale_member_and_a_stale_identifier_are_found() -> None:
    members = {"Coordinator": {"state"}}

    assert missing_members("`Coordinator.state`, `Coordinator.probe`", members) == ["Coordinator.probe"]
    assert missing_identifiers("`commit_staged`, `commit_write`", {"commit_staged"}) == ["commit_write"]


@pytest.mark.parametrize(
    "stale",
    [
        "Branches are there; `merge` is planned.",
        "| `merge` | two branches to one | planned |",
        "`omnigraph branch merge` is not built yet.",
        "Loads exist. Mutations and exports do not exist yet.",
        "Not there yet: verify, optimize.",
    ],
)
def test_a_verb_that_exists_and_is_called_unbuilt_is_found(stale: str) -> None:
    assert len(contradictions(stale, built_verbs())) == 1


@pytest.mark.parametrize(
    "fine",
    [
        "Branches are merged. The console is not built yet.",
        "`console` and `mcp` are planned.",
        "| `merge` | two branches to one | today |\n| `console` | pages | planned |",
    ],
)
def test_what_is_not_built_may_be_called_so(fine: str) -> None:
    assert contradictions(fine, built_verbs()) == []


def test_the_verbs_are_those_of_the_program_and_of_a_graph() -> None:
    verbs = built_verbs()

    expected = {"branch merge", "schema apply", "cleanup", "optimize", "load", "mutate", "merge", "entity_at"}
    assert expected <= verbs
    assert not {verb for verb in verbs if re.match(r"mcp|console", verb)}
