"""Changes of the schema: planning and applying them, and publishing what they do to tables."""
