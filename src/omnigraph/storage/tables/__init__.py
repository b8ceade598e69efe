"""Lance tables: opened at a version, scanned, looked up, staged and committed."""
