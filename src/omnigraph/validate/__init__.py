"""One validator for mutation, load, Spark and merge: what breaks the schema, and in which order."""
