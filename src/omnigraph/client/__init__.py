"""The place of the client of the HTTP server, which is specified and not built yet."""
