"""How a diagnostic is shown to a person."""

from textwrap import dedent

from omnigraph.core.diagnostics import Diagnostic, Severity, render
from omnigraph.core.span import Source, Span


def shown(text: str) -> str:
    return dedent(text).strip("\n")


def test_a_diagnostic_is_shown_with_its_line_and_a_caret() -> None:
    source = Source("node N {\n    title: Text\n}\n", "library.pg")

    rendered = render(Diagnostic("expected a type", Span(20, 24), "types are String, ..."), source)

    assert rendered == shown("""
        error: expected a type
         --> library.pg:2:12
          |
        2 |     title: Text
          |            ^^^^
          = help: types are String, ...
        """)


def test_a_source_without_a_name_is_shown_by_line_and_column() -> None:
    rendered = render(Diagnostic("what", Span(0, 4)), Source("node N {}"))

    assert rendered.splitlines()[1] == " --> 1:1"


def test_the_gutter_is_as_wide_as_the_line_number() -> None:
    source = Source("\n" * 99 + "node n {}")

    rendered = render(Diagnostic("lower case", Span(104, 105), "use N"), source)

    assert rendered == shown("""
        error: lower case
           --> 100:6
            |
        100 | node n {}
            |      ^
            = help: use N
        """)


def test_a_code_stands_before_the_message() -> None:
    diagnostic = Diagnostic("unknown type 'Bok'", code="T1")

    assert diagnostic.text == "T1: unknown type 'Bok'"
    assert render(diagnostic, Source("")) == "error: T1: unknown type 'Bok'"


def test_without_a_place_only_message_and_help_are_shown() -> None:
    diagnostic = Diagnostic("nothing here", help="look there", severity=Severity.WARNING)

    assert render(diagnostic, Source("node N {}")) == "warning: nothing here\n = help: look there"


def test_the_caret_stands_below_its_column_behind_tabs_and_accents() -> None:
    source = Source("\té: Stríng")

    lines = render(Diagnostic("what", Span(4, 10)), source).splitlines()

    assert lines[1] == " --> 1:5"
    assert lines[3:] == ["1 |  é: Stríng", "  |     ^^^^^^"]
    assert lines[3].index("Stríng") == lines[4].index("^")


def test_the_caret_of_a_long_line_stands_below_its_text() -> None:
    source = Source("// " + "x" * 500 + " HERE " + "y" * 500)
    start = source.text.index("HERE")

    lines = render(Diagnostic("what", Span(start, start + 4)), source).splitlines()

    assert lines[1] == f" --> 1:{start + 1}"
    assert lines[3].index("HERE") == lines[4].index("^^^^")
    assert len(lines[3]) <= 4 + 120
