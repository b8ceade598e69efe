"""Asking a warm server: a process of the same user that keeps a graph open for the commands that come.

Read `place.py` for where it listens and who may be trusted, `link.py` for what is said, `access.py` for what
becomes of it. Nothing here imports Lance or Arrow: to avoid that is what a warm server is for.
"""
