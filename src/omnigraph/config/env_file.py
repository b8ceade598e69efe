"""Files of `KEY=VALUE` lines that add to the environment.

E1  A variable that is set already keeps its value, also an empty one.
E2  Errors name the line, never the value: it may be a secret.
E3  A project comes from elsewhere, so its file sets only what a project may say: settings of Omnigraph and of
    stores. It cannot name a proxy, a program to run, the operator's own files, or where the operator's
    keys and tokens go.
E4  The tokens that the project names for its graphs (`bearer_token_env`) may be called anything, so they
    never become variables of the process: a program or library would obey `HTTP_PROXY`.
"""

import os
import re
from collections.abc import Collection
from pathlib import Path

from omnigraph.core.errors import BadRequest
from omnigraph.core.yaml_text import read_text

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTES = ("'", '"')
_OF_A_PROJECT = re.compile(r"(?:OMNIGRAPH|AWS|AZURE|GOOGLE)_\w+")
_OF_THE_OPERATOR = re.compile(
    r"OMNIGRAPH_(?:HOME|CONFIG|PROFILE|TOKEN_\w*)"  # their files and their tokens
    r"|OMNIGRAPH_(?:UNAUTHENTICATED|CACHE_DIR|FAILPOINTS)"
    r"|OMNIGRAPH_(?:SPARK_CONF|SPARK_MASTER)"  # Spark runs what its settings name
    r"|OMNIGRAPH_EMBED_BASE_URL"  # the key of the operator goes there
    # These may name programs, or files to send away.
    r"|(?:AWS|AZURE)_\w+_FILE|AWS_CONTAINER_\w+|GOOGLE_EXTERNAL_ACCOUNT_\w+"
    r"|AZURE_AUTHORITY_HOST|(?:AZURE|GOOGLE)_\w*(?:ENDPOINT|URL)"  # bearer tokens go there
)


def load_env_file(path: Path, tokens: Collection[str], warnings: list[str]) -> dict[str, str]:
    """Add the variables of a file to the environment of this process (E1, E3); without the file, nothing.

    Args:
        path: the file.
        tokens: the names of the variables with tokens for the project's graphs.
        warnings: where every variable that is ignored is added, by its name.

    Returns:
        Those of the tokens that the file has (E4).

    Raises:
        BadRequest: the file cannot be read, or a line is not `KEY=VALUE` (E2).
    """
    if not os.path.lexists(path):  # a secret file is not committed, and not everyone has it
        return {}
    found = {}
    for name, value in read_env_file(path).items():
        is_the_operators = _OF_THE_OPERATOR.fullmatch(name.upper()) is not None
        if name in tokens and not is_the_operators:
            found[name] = value
        elif _OF_A_PROJECT.fullmatch(name) and not is_the_operators:
            os.environ.setdefault(name, value)
        else:
            warnings.append(f"{path}: a project cannot set {name}: it is ignored; set it in the environment")
    return found


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file: blank lines and comments are skipped, quotes around a value removed.

    Raises:
        BadRequest: the file cannot be read, or a line is not `KEY=VALUE` (E2).
    """
    variables = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        if found is None or "\0" in text:
            raise BadRequest(f"{path}:{number}: not KEY=VALUE")
        variables[found[1]] = _unquoted(found[2])
    return variables


def _unquoted(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] in _QUOTES and value[-1] == value[0]
    return value[1:-1] if is_quoted else value
