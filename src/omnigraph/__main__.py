"""`python -m omnigraph`."""

from omnigraph.cli.main import main

main()
