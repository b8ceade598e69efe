"""Copies of whole graphs: what is needed, how it gets there, and whether two graphs are the same."""
