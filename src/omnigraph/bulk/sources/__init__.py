"""What a load reads: files by name, cut into slices, as the rows of a type."""
