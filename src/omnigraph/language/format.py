"""The canonical form of both languages, as `omnigraph fmt` writes it.

F1  The formatted text has the tree of the original. All tokens stay, in their order; only commas that the
    grammar makes optional come and go.
F2  Formatting what is formatted changes nothing.
F3  No comment is lost or changed, except for white space at the ends of its lines, and none leaves its item:
    one after an item on the same line stays there, one on its own line stays before what follows, one inside
    an item moves to its own line before it. Comments keep their order.
F4  Literals keep their spelling and enum values their order.
F5  A text ends with one line break, and an empty text stays empty. Outside of strings no line ends in white
    space; outside of strings and comments there are no tabs.

The tree says where items start and end, tokens say how they are spelled. From there both languages take the
same path: `format_layout` breaks items into lines, `format_spacing` writes the tokens of a line, and
`format_page` puts comments and blank lines between them.
"""

from omnigraph.core.span import Source
from omnigraph.language.format_layout import Sheet
from omnigraph.language.format_page import render
from omnigraph.language.format_query import query_lines
from omnigraph.language.format_schema import schema_lines
from omnigraph.language.parser import tokenize
from omnigraph.language.query_parser import parse_queries
from omnigraph.language.schema_parser import parse_schema


def format_schema(source: Source) -> str:
    """Return the canonical text of a schema file.

    Raises:
        ParseError: the text is not a valid schema.
    """
    tree = parse_schema(source)
    sheet = Sheet(tokenize(source))
    return render(sheet, schema_lines(tree, sheet))


def format_queries(source: Source) -> str:
    """Return the canonical text of a query file.

    Raises:
        ParseError: the text is not a valid query file.
    """
    tree = parse_queries(source)
    sheet = Sheet(tokenize(source))
    return render(sheet, query_lines(tree, sheet))
