"""The HTTP server: graphs over a socket, with the answers and errors of the embedded engine."""
