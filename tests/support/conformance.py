"""Which numbered cases of the specification do the tests show?

A test says so with ``@pytest.mark.case("languages", 12)``, once for each case it shows. Every run checks
that the marks name cases that exist; ``pytest --conformance all`` runs the tests that carry a mark and
ends with a table.

C1  A case is covered when a test that carries it passed and none that carries it failed.
C2  A skipped test did not run: it neither covers nor uncovers. An expected failure is a failure.
C3  A mark that names no case fails the collection of its module.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

CONFORMANCE_SECTION = {"languages": "## 7. ", "engine": "## 16. ", "surfaces": "## 12. "}

_GROUP = re.compile(r"###\s+(?P<heading>.+)|\*\*(?P<bold>.+)\*\*$")
_CASE = re.compile(r"(\d+)\. ")
_PROPERTY = "conformance"  # the name under which cases travel from an xdist worker in `user_properties`


@dataclass(frozen=True, order=True, slots=True)
class Case:
    """A numbered line in the conformance section of a specification."""

    document: str
    number: int

    def __str__(self) -> str:
        return f"{self.document} {self.number}"


@dataclass(frozen=True, slots=True)
class Section:
    """The cases below one heading."""

    title: str
    numbers: tuple[int, ...]


@cache
def read_sections(specification: Path, document: str) -> tuple[Section, ...]:
    """Return the sections of ``<specification>/<document>.md`` that contain cases, in their order.

    Raises:
        pytest.UsageError: The document is missing, has no cases, or has two with the same number.
    """
    path = specification / f"{document}.md"
    if not path.is_file():
        raise pytest.UsageError(f"{path} does not exist")
    opening = CONFORMANCE_SECTION[document]
    title, numbers = "", dict[str, list[int]]()
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            inside = line.startswith(opening)
        elif inside and (group := _GROUP.match(line)):
            title = group["heading"] or group["bold"]
        elif inside and (case := _CASE.match(line)):
            numbers.setdefault(title, []).append(int(case[1]))
    if not numbers:
        raise pytest.UsageError(f"{path}: no cases below a heading that starts with {opening.strip()!r}")
    found = [number for group_numbers in numbers.values() for number in group_numbers]
    if repeated := sorted({number for number in found if found.count(number) > 1}):
        raise pytest.UsageError(f"{path}: more than one case has the number {compact(repeated)}")
    return tuple(Section(title, tuple(group_numbers)) for title, group_numbers in numbers.items())


def compact(numbers: Iterable[int]) -> str:
    """Write numbers as ranges: ``1-3, 7, 9-10``."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])
    ]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def cases_of(item: pytest.Item) -> Iterator[Case]:
    """Yield the cases that a test carries.

    Raises:
        pytest.UsageError: A mark has other arguments than a document and a number.
    """
    for mark in item.iter_markers("case"):
        match mark.args:
            case (str(document), int(number)) if not mark.kwargs:
                yield Case(document, number)
            case _:
                raise pytest.UsageError('write @pytest.mark.case("<document>", <number>)')


def mistakes(items: Iterable[pytest.Item], specification: Path) -> list[str]:
    """Return one line for each test whose marks name no case of the specification."""
    lines = []
    for item in items:
        try:
            for case in cases_of(item):
                require_case(case, specification)
        except pytest.UsageError as error:
            lines.append(f"{item.name}: {error}")
    return lines


def require_case(case: Case, specification: Path) -> None:
    """Return if the specification has the case.

    Raises:
        pytest.UsageError: It has not.
    """
    if case.document not in CONFORMANCE_SECTION:
        raise pytest.UsageError(f"no document {case.document!r} among {', '.join(CONFORMANCE_SECTION)}")
    if not any(case.number in section.numbers for section in read_sections(specification, case.document)):
        raise pytest.UsageError(f"{case.document}.md has no case {case.number}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--conformance``."""
    parser.addoption(
        "--conformance",
        choices=["all", *CONFORMANCE_SECTION],
        help="run the tests that carry a case of this document, and print what is covered",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run, but only when asked: an ordinary run pays for the check of its marks alone."""
    if chosen := config.getoption("--conformance"):
        documents = tuple(CONFORMANCE_SECTION) if chosen == "all" else (chosen,)
        sections = {document: read_sections(_specification(config), document) for document in documents}
        config.pluginmanager.register(Conformance(sections))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail the module that carries a mistaken mark (C3)."""
    report = yield
    items = [node for node in report.result or () if isinstance(node, pytest.Item)]
    if lines := mistakes(items, _specification(collector.config)):
        report.outcome, report.longrepr, report.result = "failed", "\n".join(lines), []
    return report


class Conformance:
    """Collects outcomes for the cases of some documents and prints the table."""

    def __init__(self, documents: Mapping[str, Sequence[Section]]) -> None:
        self._documents = documents
        self._passed = set[Case]()
        self._failed = set[Case]()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests that carry a case, and let each one's cases travel with its reports."""
        kept, dropped = list[pytest.Item](), list[pytest.Item]()
        for item in items:
            cases = [case for case in cases_of(item) if case.document in self._documents]
            item.user_properties.extend((_PROPERTY, str(case)) for case in cases)
            (kept if cases else dropped).append(item)
        items[:] = kept
        if dropped:
            config.hook.pytest_deselected(items=dropped)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of one phase of one test; under xdist, in the controlling process."""
        cases = {
            Case(document, int(number))
            for name, value in report.user_properties
            if name == _PROPERTY
            for document, number in [str(value).split()]
        }
        if report.failed or hasattr(report, "wasxfail"):
            self._failed |= cases
        elif report.passed and report.when == "call":
            self._passed |= cases

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print covered and total for each section, then the numbers that are not covered."""
        terminalreporter.section("conformance")
        covered = self._passed - self._failed
        for document, sections in self._documents.items():
            for line in table(document, sections, covered):
                terminalreporter.write_line(line)


def table(document: str, sections: Sequence[Section], covered: set[Case]) -> Iterator[str]:
    """Yield the lines about one document."""
    whole = Section(f"{document}.md", tuple(number for section in sections for number in section.numbers))
    shown = {case.number for case in covered if case.document == document}
    for indent, section in [("", whole), *(("  ", section) for section in sections)]:
        count = len(shown.intersection(section.numbers))
        yield f"{indent + section.title:<60} {count:>4}/{len(section.numbers)}"
    if missing := set(whole.numbers) - shown:
        yield f"  not covered: {compact(missing)}"


def _specification(config: pytest.Config) -> Path:
    return config.rootpath / "docs" / "spec"
