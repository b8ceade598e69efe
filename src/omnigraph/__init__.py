"""Omnigraph: a typed property graph with git-style history on open Lance tables."""

__version__ = "0.1.0"
INTERNAL_SCHEMA_VERSION = 4
