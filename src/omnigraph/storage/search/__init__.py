"""Full-text and vector search of one table."""
