"""Reaching a graph: in its storage or behind a server, by one protocol with documents as its answers."""
