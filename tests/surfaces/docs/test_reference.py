"""The reference pages say what the code has: every command, error, code and limit, and nothing else."""

import re
from pathlib import Path

import pytest

import omnigraph as package
from omnigraph.catalog import lint, migration_codes
from omnigraph.core import limits
from omnigraph.core.errors import OmnigraphError
from tests.support import cli_reference, http_reference, python_reference
from tests.support.error_table import Listed, error_classes, listed_errors
from tests.support.pages import DOCS, REPOSITORY

REFERENCE = DOCS / "reference"
SETTING = re.compile(r'"(OMNIGRAPH_[A-Z_]*[A-Z])"')
NOT_FOR_USERS = {"OMNIGRAPH_FAILPOINTS"}
TYPE_CODES = [f"T{number}" for number in range(1, 25)]


def rows(page: str, begins: str = "") -> dict[str, list[str]]:
    """Return the table rows of a page whose first cell is code, by that code."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    cells = [
        [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if re.match(rf"\| `{begins}", line)
    ]
    names = [cell[0] for cell in cells]
    assert len(names) == len(set(names)), "a row twice"
    return {first: rest for first, *rest in cells}


def test_the_page_of_the_command_line_is_what_the_commands_say(request: pytest.FixtureRequest) -> None:
    page, rendered = REFERENCE / "cli.md", cli_reference.render()

    if request.config.getoption("--accept"):
        page.write_text(rendered, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == rendered


def test_the_page_of_the_server_is_what_its_description_says(request: pytest.FixtureRequest) -> None:
    page, rendered = REFERENCE / "http.md", http_reference.render()

    if request.config.getoption("--accept"):
        page.write_text(rendered, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == rendered


@pytest.mark.case("surfaces", 444)
def test_the_page_of_python_is_what_the_code_says(request: pytest.FixtureRequest) -> None:
    page, rendered = REFERENCE / "python.md", python_reference.render()

    if request.config.getoption("--accept"):
        page.write_text(rendered, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == rendered, "pytest tests/surfaces/docs --accept rewrites it"
    assert python_reference.undocumented(rendered) == []


@pytest.mark.case("surfaces", 444)
def test_every_public_name_and_method_is_on_the_page_of_python() -> None:
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    names = [name for name in dir(package) if not name.startswith("__") and not name.isupper()]
    verbs = [name for name in dir(package.Graph) if not name.startswith("_")]

    listed = set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) | set(re.findall(r"\*\*`(\w+)`\*\*", page))

    assert sorted(set(names) - listed) == []
    assert [name for name in verbs if f"\n#### Graph.{name}\n" not in page] == []


def test_what_has_no_word_about_it_is_found() -> None:
    page = "### a\n\n```python\na() -> int\n```\n\n\n#### b\n\nWhat b is.\n\n### c\n\n| Field |\n"

    assert python_reference.undocumented(page) == ["a", "c"]


def test_every_error_is_on_its_page_with_its_code_status_and_exit() -> None:
    listed = {name: cells[:3] for name, cells in rows("errors.md", "[A-Z]").items()}

    assert listed == {
        error.__name__: [str(error.code), str(error.status), str(error.exit_code)]
        for error in error_classes()
    }


@pytest.mark.case("engine", 282)
def test_every_error_is_what_the_specification_says() -> None:
    listed = listed_errors()

    assert len(listed) > 60
    for error in error_classes():
        parent = next((base.__name__ for base in error.__bases__ if issubclass(base, OmnigraphError)), None)
        ours = Listed(parent, error.code, error.detail, error.status, error.exit_code)
        assert listed.get(error.__name__) == ours, error.__name__


def test_every_type_code_has_a_meaning() -> None:
    assert list(rows("diagnostics.md", r"T\d")) == TYPE_CODES


def test_the_type_codes_are_those_that_the_checker_raises() -> None:
    sources = (REPOSITORY / "src" / "omnigraph" / "catalog").glob("*.py")

    raised = {code for path in sources for code in re.findall(r'"(T\d+)"', path.read_text(encoding="utf-8"))}

    assert sorted(raised, key=lambda code: int(code[1:])) == TYPE_CODES


def test_the_specification_has_the_same_type_codes() -> None:
    text = (DOCS / "spec" / "languages.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `(T\d+)` \|", text, re.MULTILINE) == TYPE_CODES


def test_every_lint_code_has_a_meaning() -> None:
    codes = {value for name, value in vars(lint).items() if name.isupper() and not name.startswith("_")}

    assert rows("diagnostics.md", r"[QL]\d").keys() == codes


def test_every_code_of_a_schema_change_has_its_tier_and_a_meaning() -> None:
    listed = rows("diagnostics.md", "OG-")

    assert {code: cells[0] for code, cells in listed.items()} == {
        entry.code: entry.tier for entry in migration_codes.CODES
    }
    assert {code for code, cells in listed.items() if "reserved" in cells[1]} == {
        entry.code for entry in migration_codes.CODES if entry.is_reserved
    }


def test_every_limit_is_on_its_page_with_its_value() -> None:
    listed = {name: number(cells[0]) for name, cells in rows("limits.md", "[A-Z]").items()}

    assert listed == {name: value for name, value in vars(limits).items() if name.isupper()}


def test_every_setting_is_on_its_page() -> None:
    sources = (REPOSITORY / "src").rglob("*.py")
    page = (REFERENCE / "limits.md").read_text(encoding="utf-8")

    read = {name for path in sources for name in SETTING.findall(path.read_text(encoding="utf-8"))}

    assert len(read) >= 5
    assert sorted(name for name in read - NOT_FOR_USERS if f"`{name}`" not in page) == []


def number(cell: str) -> int:
    """Return the number that a cell begins with."""
    return int(cell.split(maxsplit=1)[0].replace(",", "").replace("−", "-"))


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda page: page.name)
def test_every_page_is_listed(page: Path) -> None:
    listing = (REFERENCE / "README.md").read_text(encoding="utf-8")

    assert page.name == "README.md" or f"({page.name})" in listing
