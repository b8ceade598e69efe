"""What decides answers besides the call: a warm server answers only those with the same.

S1  The environment counts where it may change what a graph answers, what is written or who pays for it. More
    is compared than is needed: a server that is not used costs time, a wrong answer costs more.
S2  Values leave this process as one digest.
S3  A variable that may name a file by a path from here counts together with the folder that is here.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from omnigraph import __version__

PREFIXES = ("OMNIGRAPH_", "AWS_", "AZURE_", "GOOGLE_", "LANCE_", "OPENAI_", "OPENROUTER_", "GEMINI_")
NAMES = frozenset(
    {
        *("HOME", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *(f"{name}_PROXY" for name in ("HTTP", "HTTPS", "ALL", "NO")),
        *(f"{name}_proxy" for name in ("http", "https", "all", "no")),
    }
)
# What only the command itself looks at, before it asks a graph anything.
OWN = frozenset(
    {
        *("OMNIGRAPH_NO_WARM", "OMNIGRAPH_WARM_IDLE_S", "OMNIGRAPH_HOME", "OMNIGRAPH_CONFIG"),
        *("OMNIGRAPH_PROFILE", "OMNIGRAPH_LOG"),
    }
)
_OF_FILES = ("_FILE", "_DIR", "_CREDENTIALS", "_BUNDLE", "_PATH")


def counts(name: str) -> bool:
    """Say whether a variable of the environment is compared (S1)."""
    return name in NAMES or (name.startswith(PREFIXES) and name not in OWN)


def digest_of_settings(environment: Mapping[str, str] | None = None) -> str:
    """Return a digest of everything that must be the same for a server and a command (S2)."""
    given = os.environ if environment is None else environment
    counted = {name: value for name, value in given.items() if counts(name)}
    has_paths = any(name.endswith(_OF_FILES) and not value.startswith("/") for name, value in counted.items())
    mask = os.umask(0o077)
    os.umask(mask)
    parts = [
        __version__,
        str(Path(__file__).parents[2]),
        sys.version,
        f"{mask:o}",
        repr((os.getegid(), sorted(os.getgroups()))),
        Path.cwd().as_posix() if has_paths else "",
        *sorted(f"{name}={value}" for name, value in counted.items()),
    ]
    return hashlib.sha256(os.fsencode("\0".join(parts))).hexdigest()
