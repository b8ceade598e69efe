"""Values, errors and limits that every layer shares; only `arrays` needs more than the standard library."""
