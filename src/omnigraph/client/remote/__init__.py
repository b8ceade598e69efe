"""A graph behind a server as a Python user holds it: the methods of `Graph`, over HTTP."""
