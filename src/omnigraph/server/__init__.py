"""The place of the HTTP server, which is specified and not built yet."""
