"""The warm server: a graph kept open for the commands of one user, on a socket that only they can reach.

`serve.py` listens and ends, `calls.py` carries out what one connection asks for, `origin.py` notices that the
graph is no longer the one that was opened. What is said on a connection is in `client/warm/link.py`.
"""
