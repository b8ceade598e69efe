"""Graphs for programs with an event loop: every call of a graph as a coroutine, on threads of its own."""
