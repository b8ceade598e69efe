"""What a schema says about a type and its properties besides their types, as it would be written."""

from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.catalog.render import embed_text, external_text, literal_text, note_text
from omnigraph.catalog.shape import Rule


def property_annotations(type_: NodeType | EdgeType, item: Property) -> tuple[str, ...]:
    """Return the annotations that concern one property alone: constraints first, notes last."""
    alone = (item.name,)
    is_key = isinstance(type_, NodeType) and type_.key == alone
    words = ["@key"] if is_key else []
    words += ["@unique"] if alone in type_.unique and not is_key else []
    words += ["@index"] if alone in type_.indexes and not is_key else []
    if isinstance(type_, NodeType):
        words += [
            str(Rule("range", alone, low=bounds.low, high=bounds.high))
            for bounds in type_.ranges.get(item.name, ())
        ]
        words += [str(Rule("check", alone, pattern=check)) for check in type_.checks.get(item.name, ())]
    return (*words, *own_annotations(item))


def own_annotations(item: Property) -> tuple[str, ...]:
    """Return the annotations of a property that are no constraints on the rows of its type."""
    words = [] if item.embed is None else [embed_text(item.embed)]
    words += [] if item.default is None else [f"@default({literal_text(item.default)})"]
    words += [external_text(item.external)] if item.external else []
    return (*words, *map(note_text, item.notes))


def type_annotations(type_: NodeType | EdgeType) -> tuple[str, ...]:
    """Return the constraints over several properties, an edge's numbers, and the notes of a type."""
    words = []
    if isinstance(type_, NodeType) and type_.written_key is not None and len(type_.written_key) > 1:
        words.append(str(Rule("key", type_.written_key)))
    words += [
        str(Rule(kind, columns))
        for kind, all_columns in (("unique", type_.unique), ("index", type_.indexes))
        for columns in all_columns
        if len(columns) > 1 and not (isinstance(type_, NodeType) and set(columns) == set(type_.key or ()))
    ]
    if isinstance(type_, EdgeType) and (type_.low, type_.high) != (0, None):
        words.append(f"@card({type_.low}..{'' if type_.high is None else type_.high})")
    return (*words, *map(note_text, type_.notes))
