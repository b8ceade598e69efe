"""Files beside their canonical form; `pytest --accept` rewrites the expectations."""

from pathlib import Path

import pytest

from tests.support.formatting import QUERY, SCHEMA, check_promises
from tests.support.pages import REPOSITORY

CASES = Path(__file__).parent / "format"
EXAMPLES = REPOSITORY / "examples"
LANGUAGES = {".pg": SCHEMA, ".gq": QUERY}


def sources(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.suffix in LANGUAGES)


@pytest.mark.parametrize("path", sources(CASES), ids=lambda path: path.name)
def test_a_file_is_brought_into_its_canonical_form(path: Path, request: pytest.FixtureRequest) -> None:
    expected = path.with_name(f"{path.name}.formatted")

    formatted = check_promises(LANGUAGES[path.suffix], path.read_text(encoding="utf-8"))

    if request.config.getoption("--accept", default=False):
        expected.write_text(formatted, encoding="utf-8")
    assert formatted == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sources(CASES), ids=lambda path: path.name)
def test_a_canonical_file_has_the_form_it_has(path: Path) -> None:
    expected = path.with_name(f"{path.name}.formatted").read_text(encoding="utf-8")

    assert check_promises(LANGUAGES[path.suffix], expected) == expected


def test_every_expectation_belongs_to_a_case() -> None:
    expectations = {path.name for path in CASES.glob("*.formatted")}

    assert expectations == {f"{path.name}.formatted" for path in sources(CASES)}


@pytest.mark.parametrize("path", sources(EXAMPLES), ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_the_examples_keep_the_promises(path: Path) -> None:
    check_promises(LANGUAGES[path.suffix], path.read_text(encoding="utf-8"))
