"""The HTTP server: graphs behind routes, tokens and limits.

Read `route.py` first: a route is a value, and one function takes every request through the same refusals.
`app.py` puts the routes together, `serve.py` runs them until a signal comes.
"""
