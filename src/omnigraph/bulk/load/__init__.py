"""The Spark half of a load: what tasks do with a slice, and the set checks as jobs."""
