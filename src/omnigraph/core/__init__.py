"""Values, errors and limits that every layer shares; depends on the standard library alone."""
