"""Default values of properties as tables store them."""

from omnigraph.catalog.model import Property


def stored_default(item: Property) -> object:
    """Return the value that a row gets which does not mention a property; None if it has no default."""
    return getattr(item, "default", None)
