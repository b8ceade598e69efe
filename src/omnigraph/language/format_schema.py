"""The lines of a schema file."""

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.language.format_layout import Blank, Group, Head, LayoutItem, Line, Run, Sheet, lay_out
from omnigraph.language.schema_ast import Annotation, Declaration, Edge, Interface, Node, SchemaFile


def schema_lines(tree: SchemaFile, sheet: Sheet) -> Iterator[Line]:
    """Yield the lines of all declarations; edges without a body stay as close together as written."""
    was_bare = False
    for declaration in tree.declarations:
        is_bare = not _has_body(declaration, sheet)
        first, *others = lay_out(sheet, _declaration(declaration, sheet), 0)
        yield replace(first, blank=Blank.AS_WRITTEN if is_bare and was_bare else Blank.ALWAYS)
        yield from others
        was_bare = is_bare


def _has_body(declaration: Declaration, sheet: Sheet) -> bool:
    return sheet.last_token(sheet.run(declaration.span)).text == "}"


def _declaration(declaration: Declaration, sheet: Sheet) -> LayoutItem:
    start, parts = _head(declaration, sheet)
    if not _has_body(declaration, sheet):
        return Head(start, parts, None)
    whole = sheet.run(declaration.span)
    brace = (start, *parts)[-1].last
    opening, closing = Run(brace, brace + 1), Run(whole.last - 1, whole.last)
    items = declaration.properties if isinstance(declaration, Interface) else declaration.body
    if not items and not sheet.has_comment(opening, closing):
        return _with_brace(start, parts, Run(brace, whole.last))
    return Group(_with_brace(start, parts, opening), tuple(sheet.run(item.span) for item in items), closing)


def _head(declaration: Declaration, sheet: Sheet) -> tuple[Run, tuple[Run, ...]]:
    """Return what a head starts with, and the parts that get a line each when it is too long for one."""
    first = sheet.run(declaration.span).first
    match declaration:
        case Interface(name):
            return Run(first, sheet.run(name.span).last), ()
        case Node(name, annotations, implements):
            parts = _annotations(annotations, sheet)
            if implements:
                names = sheet.run(implements[0].span.to(implements[-1].span))
                parts = (*parts, Run(names.first - 1, names.last))
            return Run(first, sheet.run(name.span).last), parts
        case Edge(target=target, cardinality=cardinality, annotations=annotations):
            end = sheet.run((cardinality or target).span)
            return Run(first, end.last), _annotations(annotations, sheet)


def _annotations(annotations: tuple[Annotation, ...], sheet: Sheet) -> tuple[Run, ...]:
    return tuple(sheet.run(annotation.span) for annotation in annotations)


def _with_brace(start: Run, parts: tuple[Run, ...], brace: Run) -> LayoutItem:
    """Return a head with its brace; where nothing can be broken, the brace stays on the line."""
    return Head(start, parts, brace) if parts else Run(start.first, brace.last)
