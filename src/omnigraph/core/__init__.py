"""Values, errors and limits that every layer shares; depends only on the standard library."""
