"""The rules of `@external("base", ...)`: which properties hold references, and below which bases."""

from collections.abc import Iterator

from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.external_uri import base_fault
from omnigraph.core.limits import EXTERNAL_BASES_MAX
from omnigraph.core.values import Scalar
from omnigraph.language.parser import clip
from omnigraph.language.schema_ast import Annotation, ListArgument, PropertyDeclaration


def check_external(annotation: Annotation, item: PropertyDeclaration) -> Iterator[Diagnostic]:
    """Yield what is wrong with the bases of a property."""
    name, type_ = item.name.text, item.type.value_type
    if type_.scalar is not Scalar.BLOB or type_.is_list:  # S43
        yield Diagnostic(f"@external on '{name}': only a Blob holds references, not {type_}", annotation.span)
        return
    if not isinstance(annotation.argument, ListArgument):  # S44
        message = f"@external on '{name}' needs a base, as in @external(\"s3://bucket/folder/\")"
        yield Diagnostic(message, annotation.span)
        return
    bases = annotation.argument.items
    if len(bases) > EXTERNAL_BASES_MAX:  # S44
        message = f"@external on '{name}' has {len(bases)} bases, at most {EXTERNAL_BASES_MAX} are allowed"
        yield Diagnostic(message, annotation.span)
    for base in bases:
        assert isinstance(base.value, str), "the grammar has no other base"
        fault = base_fault(base.value)
        if fault:  # S44
            yield Diagnostic(f"@external on '{name}': '{clip(base.value)}': {fault}", base.span)
