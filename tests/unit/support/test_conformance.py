"""The conformance plugin, in small projects of its own that a real pytest runs."""

from pathlib import Path

import pytest

from tests.support.conformance import Case, Section, compact, read_sections, table
from tests.support.pages import REPOSITORY

pytest_plugins = ["pytester"]


LANGUAGES = """\
# Languages

1. not a case: this list stands before the conformance section

## 7. Conformance list

### 7.1 Lexing

1. one
2. two
   1. not a case: indented
3. three

### 7.2 Parsing

4. four
5. five

## 8. After

6. not a case: this list stands after the conformance section
"""

ENGINE = "## 16. Conformance list\n\n### 16.1 Layout\n\n1. one\n"

SURFACES = (
    "## 12. Conformance list\n\n**Policy**\n\n1. **not** a heading\n\n**Cluster**\n\n2. two\n3. three\n"
)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    specification = pytester.mkdir("docs") / "spec"
    specification.mkdir()
    for name, text in {"languages": LANGUAGES, "engine": ENGINE, "surfaces": SURFACES}.items():
        (specification / f"{name}.md").write_text(text)
    pytester.makeini("[pytest]\nmarkers = case\n")
    pytester.makeconftest('pytest_plugins = ["tests.support.conformance"]')
    return pytester


def test_sections_are_the_headings_with_cases(project: pytest.Pytester) -> None:
    specification = project.path / "docs" / "spec"

    assert read_sections(specification, "languages") == (
        Section("7.1 Lexing", (1, 2, 3)),
        Section("7.2 Parsing", (4, 5)),
    )
    assert read_sections(specification, "surfaces") == (Section("Policy", (1,)), Section("Cluster", (2, 3)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("## 7. Conformance list\n\nNothing yet.\n", "no cases"),
        ("## 7. Conformance list\n\n1. one\n2. two\n1. again\n", "more than one case has the number 1"),
    ],
)
def test_a_specification_without_usable_numbers_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "languages.md").write_text(text)

    with pytest.raises(pytest.UsageError, match=complaint):
        read_sections(tmp_path, "languages")


def test_numbers_are_written_as_ranges() -> None:
    assert compact([9, 1, 2, 3, 7, 10]) == "1-3, 7, 9-10"
    assert compact([]) == ""


def test_a_fully_covered_document_lists_no_numbers() -> None:
    lines = list(table("engine", [Section("16.1 Layout", (1,))], {Case("engine", 1)}))

    assert [line.split()[-1] for line in lines] == ["1/1", "1/1"]


OUTCOMES = """
    import pytest

    @pytest.mark.case("languages", 1)
    def test_passes():
        pass

    @pytest.mark.case("languages", 2)
    def test_fails():
        assert False

    @pytest.mark.case("languages", 2)
    def test_passes_beside_a_failure():
        pass

    @pytest.mark.case("languages", 3)
    @pytest.mark.skip
    def test_does_not_run():
        pass

    @pytest.mark.case("languages", 4)
    @pytest.mark.case("surfaces", 2)
    @pytest.mark.parametrize("value", [1, pytest.param(2, marks=pytest.mark.case("surfaces", 3))])
    def test_carries_several(value):
        pass

    @pytest.mark.case("languages", 4)
    @pytest.mark.skip
    def test_skipped_beside_a_pass():
        pass

    @pytest.mark.case("languages", 5)
    @pytest.mark.xfail
    def test_fails_as_expected():
        assert False

    @pytest.mark.case("languages", 5)
    def test_passes_beside_an_expected_failure():
        pass

    @pytest.fixture
    def broken():
        yield
        raise OSError

    @pytest.mark.case("engine", 1)
    def test_fails_in_teardown(broken):
        pass

    def test_carries_none():
        pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_case_is_covered_when_its_tests_ran_and_passed(project: pytest.Pytester, workers: str) -> None:
    project.makepyfile(OUTCOMES)

    result = project.runpytest_subprocess("--conformance", "all", "-n", workers)

    result.assert_outcomes(passed=6, failed=1, errors=1, skipped=2, xfailed=1, deselected=workers == "0")
    result.stdout.fnmatch_lines(
        [
            "languages.md * 2/5",
            "  7.1 Lexing * 1/3",
            "  7.2 Parsing * 1/2",
            "  not covered: 2-3, 5",
            "engine.md * 0/1",
            "  16.1 Layout * 0/1",
            "  not covered: 1",
            "surfaces.md * 2/3",
            "  Policy * 0/1",
            "  Cluster * 2/2",
            "  not covered: 1",
        ]
    )


def test_one_document_runs_the_tests_that_carry_it(project: pytest.Pytester) -> None:
    project.makepyfile(OUTCOMES)

    result = project.runpytest_subprocess("--conformance", "surfaces")

    result.assert_outcomes(passed=2, deselected=9)
    result.stdout.no_fnmatch_line("languages.md *")


MISTAKES = """
    import pytest

    @pytest.mark.case("languages", 6)
    def test_number():
        pass

    @pytest.mark.case("grammar", 1)
    def test_document():
        pass

    @pytest.mark.case("languages")
    def test_arguments():
        pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_mistaken_mark_fails_the_collection(project: pytest.Pytester, workers: str) -> None:
    project.makepyfile(MISTAKES)

    result = project.runpytest_subprocess("-n", workers)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "test_number: languages.md has no case 6",
            "test_document: no document 'grammar' among languages, engine, surfaces",
            'test_arguments: write @pytest.mark.case("<document>", <number>)',
        ]
    )


def test_an_ordinary_run_neither_selects_nor_reports(project: pytest.Pytester) -> None:
    project.makepyfile(OUTCOMES)

    result = project.runpytest_subprocess()

    result.assert_outcomes(passed=7, failed=1, errors=1, skipped=2, xfailed=1)
    result.stdout.no_fnmatch_line("*conformance*")
