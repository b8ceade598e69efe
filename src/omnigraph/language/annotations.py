"""What the annotations of a property or declaration say, apart from whether they are allowed there."""

from dataclasses import dataclass

from omnigraph.language.schema_ast import Annotation, Interface, LiteralArgument, NameArgument, Node, Property

COLUMN_ANNOTATIONS = ("key", "unique", "index")  # the same as a one-column constraint in the body
TYPED_ANNOTATIONS = frozenset({*COLUMN_ANNOTATIONS, "embed", "rename_from"})


@dataclass(frozen=True, slots=True)
class Embed:
    """Where the vectors of a property come from."""

    source: str
    model: str | None


def written_columns(item: Property) -> tuple[str, ...]:
    """Return which of key, unique and index are written on a property."""
    names = {annotation.name for annotation in item.annotations}
    return tuple(name for name in COLUMN_ANNOTATIONS if name in names)


def embed_of(item: Property) -> Embed | None:
    """Return the embed source of a property that passed the rules."""
    annotation = find(item.annotations, "embed")
    if annotation is None:
        return None
    source = argument_text(annotation)
    model = dict(annotation.keywords).get("model")
    assert source is not None
    assert model is None or isinstance(model, str)
    return Embed(source, model)


def rename_hint(annotations: tuple[Annotation, ...]) -> str | None:
    """Return the name given by `@rename_from`."""
    annotation = find(annotations, "rename_from")
    return None if annotation is None else argument_text(annotation)


def opaque(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    """Return the annotations without a meaning of their own to the catalog, in a canonical order."""
    kept = {repr(a): a for a in annotations if a.name not in TYPED_ANNOTATIONS}
    return tuple(kept[text] for text in sorted(kept))


def find(annotations: tuple[Annotation, ...], name: str) -> Annotation | None:
    """Return the first annotation of a name."""
    return next((annotation for annotation in annotations if annotation.name == name), None)


def argument_text(annotation: Annotation) -> str | None:
    """Return the positional argument where it is a name or a string."""
    match annotation.argument:
        case NameArgument(name):
            return name
        case LiteralArgument(str() as text):
            return text
        case _:
            return None


@dataclass(frozen=True, slots=True)
class OwnedProperty:
    """A property that a node has: declared by itself, or injected by interfaces."""

    item: Property
    is_declared: bool
    interfaces: tuple[str, ...]


def owned_properties(node: Node, interfaces: dict[str, Interface]) -> dict[str, OwnedProperty]:
    """Return every property of a node by name: its own as written, then the injected ones.

    An unknown interface is passed over, and of two different declarations the first one is taken; the rules
    and the catalog report both.
    """
    suppliers: dict[str, list[str]] = {}
    injected: dict[str, Property] = {}
    for name in sorted({implemented.text for implemented in node.implements}):
        for item in interfaces[name].properties if name in interfaces else ():
            suppliers.setdefault(item.name.text, []).append(name)
            injected.setdefault(item.name.text, item)
    owned: dict[str, OwnedProperty] = {}
    for item in node.properties:
        name = item.name.text
        owned.setdefault(name, OwnedProperty(item, True, tuple(suppliers.get(name, ()))))
    for name, item in injected.items():
        owned.setdefault(name, OwnedProperty(item, False, tuple(suppliers[name])))
    return owned
