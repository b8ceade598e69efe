"""The exit codes of the command line; other failures bring theirs with the error."""

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
