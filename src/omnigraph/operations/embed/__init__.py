"""`embed`: vectors for the texts of a graph, or of a file."""
