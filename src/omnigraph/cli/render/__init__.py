"""Values to text for people."""
