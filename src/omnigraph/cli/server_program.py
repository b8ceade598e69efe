"""The program `omnigraph-server`: the same as `omnigraph server`."""

import sys
from typing import NoReturn

from omnigraph.cli.main import main as omnigraph


def main() -> NoReturn:
    """Run the server with the arguments of the process."""
    omnigraph(["server", *sys.argv[1:]])
