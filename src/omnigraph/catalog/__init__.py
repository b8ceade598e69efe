"""What types exist and what they mean: catalogs, migration plans, checked queries."""
