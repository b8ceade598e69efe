"""What crosses the wire: the documents of results and errors, the same for `--json` and for HTTP."""
