"""Declarations of other languages from a schema and its stored queries."""
