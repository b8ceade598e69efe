"""`omnigraph login` and `logout`: the token of a server, kept in a file of the operator."""

import sys

import click

from omnigraph.cli.options import json_option
from omnigraph.cli.printing import print_document, say, tell
from omnigraph.cli.settings import settings
from omnigraph.core.errors import BadRequest

_TOKEN_BYTES_MAX = 65_536


@click.command()
@click.argument("name")
@click.option("--token", metavar="TOKEN", help="The token; without it, one line of standard input.")
@json_option
def login(*, name: str, token: str | None, as_json: bool) -> None:
    """Keep the token of the server NAME, in a file that only you can read.

    A token on the command line is visible to other users of the machine while the program runs: give it on
    standard input where that matters.
    """
    from omnigraph.config.credentials import check_token, write_token
    from omnigraph.config.places import credentials_path

    _check_name(name)
    given = check_token(_one_line() if token is None else token)
    operator = settings(None).operator
    is_declared = operator is not None and name in operator.servers
    write_token(credentials_path(), name, given)
    if not is_declared:
        tell(f"warning: no server '{name}' under servers: in the operator file; the token is not used yet")
    if as_json:
        print_document({"server": name, "credentials_path": str(credentials_path()), "declared": is_declared})
    else:
        say(f"kept the token of {name} in {credentials_path()}")


@click.command()
@click.argument("name")
@json_option
def logout(*, name: str, as_json: bool) -> None:
    """Forget the token of the server NAME; without one, nothing happens."""
    from omnigraph.config.credentials import remove_token
    from omnigraph.config.places import credentials_path

    _check_name(name)
    was_kept = remove_token(credentials_path(), name)
    if as_json:
        print_document({"server": name, "credentials_path": str(credentials_path())})
    else:
        done = "removed the token of" if was_kept else "there is no token of"
        say(f"{done} {name} in {credentials_path()}")


def _check_name(name: str) -> None:
    from omnigraph.config.operator_file import SERVER_NAME

    if SERVER_NAME.fullmatch(name) is None:
        raise BadRequest(f"'{name}' is not the name of a server: use letters, digits, _ and -")


def _one_line() -> str:
    if sys.stdin.isatty():
        tell("Token: ", nl=False)
    return sys.stdin.readline(_TOKEN_BYTES_MAX)
