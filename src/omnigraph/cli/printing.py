"""Printing the documents that `--json` asks for."""

import json
from collections.abc import Mapping

import click


def print_document(document: Mapping[str, object]) -> None:
    """Print one JSON document to standard output."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
