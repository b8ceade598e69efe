"""Configuration: the files that people and projects keep, as values; nothing here opens a graph."""
