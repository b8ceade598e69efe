"""Merging two branches: what is taken, what is kept, what conflicts."""
