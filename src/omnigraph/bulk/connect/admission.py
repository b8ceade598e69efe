"""May this executor take part? It needs the driver's packages, and must see the graph.

Executors come and go while an operation runs, so it is checked twice: for all that are there before the work
starts, and by every executor process before its first task.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from omnigraph.core.errors import SparkUnavailable

PACKAGES = ("pylance", "pyarrow")


@dataclass(frozen=True, slots=True)
class Probe:
    """What an executor must find: the token under the root, and the versions of the driver."""

    root: str
    name: str
    token: str
    versions: tuple[tuple[str, str], ...]


def driver_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of this process, by package."""
    import platform

    import omnigraph

    python = ".".join(platform.python_version_tuple()[:2])
    own = ("python", python), ("omnigraph", omnigraph.__version__)
    return (*own, *((name, version(name)) for name in PACKAGES))


def admit(probe: Probe | None) -> None:
    """Let this process work for the driver; it is checked once, and not at all without a probe.

    Raises:
        SparkUnavailable: names the host and what is different here.
    """
    import socket

    problem = "" if probe is None else _problem_here(probe)
    if problem:
        raise SparkUnavailable(refusal(socket.gethostname(), problem))


def refusal(host: str, problem: str) -> str:
    """Return the text of the error for an executor that may not take part."""
    return f"the executor on {host} {problem}"


def examination(probe: Probe) -> Callable[[], str]:
    """Return a function that says what is wrong with the process it runs in; an empty text means nothing.

    It is sent by value: an executor without our package must be able to run it, and to say so.
    """
    root, name, token, versions = probe.root, probe.name, probe.token, probe.versions

    def problem() -> str:
        import importlib.metadata
        import platform

        for package, wanted in versions:
            try:
                if package == "python":
                    found = ".".join(platform.python_version_tuple()[:2])
                elif package == "omnigraph":
                    import omnigraph

                    found = omnigraph.__version__
                else:
                    found = importlib.metadata.version(package)
            except Exception:  # noqa: BLE001 - whatever keeps a package from being there
                found = "not installed"
            if found != wanted:
                return f"has {package} {found}, not {wanted}"
        try:
            from omnigraph.storage.control.durability import Durability
            from omnigraph.storage.control.object_store import open_adapter
            from omnigraph.storage.control.uri import GraphRoot

            adapter = open_adapter(GraphRoot.parse(root), Durability.PROCESS)
            if adapter.read_text_if_exists(name) != token:
                return f"does not see the graph at {root}"
        except Exception as error:  # noqa: BLE001 - any failure means that the graph is out of reach
            return f"cannot read the graph at {root}: {error}"
        return ""

    return problem


@cache
def _problem_here(probe: Probe) -> str:
    return examination(probe)()
