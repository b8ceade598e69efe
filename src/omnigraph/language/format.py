"""The canonical form of the two languages, behind `omnigraph fmt`.

F1  The formatted text has the tree of the original. All tokens stay, in their order; only commas that the
    grammar makes optional come and go.
F2  Formatting what is formatted changes nothing.
F3  No comment is lost or changed, but for white space at the ends of its lines, and none leaves its item: one
    behind an item on its line stays there, one on a line of its own stays before what follows, one inside
    moves to a line of its own before it. Comments keep their order.
F4  Literals keep their spelling and enum values their order.
F5  A text ends with one line break, and nothing becomes nothing. Outside of strings no line ends in white
    space; outside of strings and comments there is no tab.

The tree says where items start and end, tokens say how they are spelled. From there both languages go the
same way: `format_layout` breaks items into lines, `format_spacing` writes the tokens of a line, and
`format_page` puts comments and blank lines between them.
"""

from omnigraph.core.span import Source
from omnigraph.language.format_layout import Sheet
from omnigraph.language.format_page import render
from omnigraph.language.format_query import query_lines
from omnigraph.language.format_schema import schema_lines
from omnigraph.language.lexer import tokenize
from omnigraph.language.query_parser import parse_queries
from omnigraph.language.schema_parser import parse_schema


def format_schema(source: Source) -> str:
    """Return the canonical text of a schema file.

    Raises:
        ParseError: the text is no schema.
    """
    tree = parse_schema(source)
    sheet = Sheet(tokenize(source))
    return render(sheet, schema_lines(tree, sheet))


def format_queries(source: Source) -> str:
    """Return the canonical text of a query file.

    Raises:
        ParseError: the text is no query file.
    """
    tree = parse_queries(source)
    sheet = Sheet(tokenize(source))
    return render(sheet, query_lines(tree, sheet))
