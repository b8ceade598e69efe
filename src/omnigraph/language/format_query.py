"""The lines of a query file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from omnigraph.core.span import Span
from omnigraph.language.format_layout import Blank, Group, Head, LayoutItem, Line, Run, Sheet, extent, lay_out
from omnigraph.language.query_ast import (
    Assignment,
    Binding,
    Clause,
    Delete,
    Filter,
    Insert,
    Mutation,
    Negation,
    Projection,
    PropertyMatch,
    Query,
    QueryFile,
    Read,
    Statement,
    TextPredicate,
    Traversal,
    Update,
)


def query_lines(tree: QueryFile, sheet: Sheet) -> Iterator[Line]:
    """Yield the lines of all queries."""
    for query in tree.queries:
        first, *others = lay_out(sheet, _query(query, sheet), 0)
        yield replace(first, blank=Blank.ALWAYS)
        yield from others


def _query(query: Query, sheet: Sheet) -> LayoutItem:
    whole = sheet.run(query.span)
    items = _read(query.body, sheet) if isinstance(query.body, Read) else _mutation(query.body, sheet)
    brace = extent(items[0]).first - 1
    return Group(_head(query, Run(brace, brace + 1), sheet), items, Run(whole.last - 1, whole.last))


# Heads


def _head(query: Query, brace: Run, sheet: Sheet) -> LayoutItem:
    annotations = _annotations(query, sheet)
    end = annotations[0].first if annotations else brace.last
    start = _signature(query, end, sheet)
    return Head(start, annotations, brace) if annotations else start


def _annotations(query: Query, sheet: Sheet) -> tuple[Run, ...]:
    """Return `@name("text")` for both texts, in the order written."""
    texts = [sheet.run(text.span) for text in (query.description, query.instruction) if text is not None]
    return tuple(Run(text.first - 3, text.last + 1) for text in sorted(texts, key=lambda run: run.first))


def _signature(query: Query, end: int, sheet: Sheet) -> Run | Group:
    """Return the query from its first token up to `end` (exclusive), its parameters as separate items."""
    first = sheet.run(query.span).first
    parameters = tuple(sheet.run(parameter.span) for parameter in query.parameters)
    if not parameters:
        return Run(first, end)
    opening, closing = Run(first, parameters[0].first), Run(parameters[-1].last, end)
    return Group(opening, parameters, closing, separator=",", padding="", is_inline=True)


# Reads


def _read(read: Read, sheet: Sheet) -> tuple[LayoutItem, ...]:
    match_block = _block(tuple(_clause(clause, sheet) for clause in read.clauses), sheet)
    return_block = _block(_projections(read.projections, sheet), sheet, is_inline=len(read.projections) == 1)
    parts: list[LayoutItem] = [match_block, return_block]
    behind = return_block.closing.last
    if read.orderings:
        orderings = tuple(sheet.run(ordering.span) for ordering in read.orderings)
        order_block = _block(orderings, sheet, separator=",", is_inline=True)
        parts.append(order_block)
        behind = order_block.closing.last
    if read.limit is not None:
        parts.append(Run(behind, behind + 2))
    return tuple(parts)


def _block(
    items: tuple[LayoutItem, ...], sheet: Sheet, *, separator: str = "", is_inline: bool = False
) -> Group:
    """Return items between braces, after the word that says what they are."""
    brace = extent(items[0]).first - 1
    return _braces(Run(brace - 1, brace + 1), items, sheet, separator=separator, is_inline=is_inline)


def _projections(projections: tuple[Projection, ...], sheet: Sheet) -> tuple[LayoutItem, ...]:
    """Return the projections, which need no comma, unless `x, as` would become `x as` (F1)."""
    runs = [sheet.run(projection.span) for projection in projections]
    for index, (projection, following) in enumerate(zip(projections, runs[1:], strict=False)):
        if projection.alias is None and sheet.tokens[following.first].text == "as":
            runs[index] = Run(runs[index].first, following.first)
    return tuple(runs)


def _clause(clause: Clause, sheet: Sheet) -> LayoutItem:
    match clause:
        case Binding(matches=matches) if matches:
            return _properties(clause.span, matches, sheet)
        case Negation(clauses):
            is_simple = len(clauses) == 1 and not isinstance(clauses[0], Negation)
            return _block(tuple(_clause(inner, sheet) for inner in clauses), sheet, is_inline=is_simple)
        case Binding() | Traversal() | Filter() | TextPredicate():
            return sheet.run(clause.span)


# Mutations


def _mutation(mutation: Mutation, sheet: Sheet) -> tuple[LayoutItem, ...]:
    return tuple(_statement(statement, sheet) for statement in mutation.statements)


def _statement(statement: Statement, sheet: Sheet) -> LayoutItem:
    match statement:
        case Insert() | Update():
            return _properties(statement.span, statement.assignments, sheet)
        case Delete():
            return sheet.run(statement.span)


# Both


def _properties(span: Span, properties: Sequence[Assignment | PropertyMatch], sheet: Sheet) -> Group:
    """Return a tree of `property: value` pairs between braces, with what comes before and after them."""
    whole = sheet.run(span)
    items = tuple(sheet.run(pair.name.span.to(pair.value.span)) for pair in properties)
    group = _braces(Run(whole.first, items[0].first), items, sheet, separator=",", is_inline=True)
    return replace(group, closing=Run(group.closing.first, whole.last))


def _braces(
    opening: Run, items: tuple[LayoutItem, ...], sheet: Sheet, *, separator: str, is_inline: bool
) -> Group:
    """Return items after an opening brace; a comma after the last one is left out."""
    closing = sheet.behind(extent(items[-1]))
    return Group(opening, items, Run(closing, closing + 1), separator, is_inline=is_inline)
