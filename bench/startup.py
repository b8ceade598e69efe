"""How much processor time the program takes for small things, beside `import lance`.

Processor time of a process of its own, with modules that are compiled already, as those of an installed
program are: the first round compiles them and does not count. A round runs everything once, one behind the
other, so that a machine that is busy for a while is busy for all of them; the least of the rounds counts, and
ratios are of those. Numbers are reported and never fail: run it with `make bench`, or alone with a number of
rounds.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
BANK = Path(__file__).parent.parent / "examples" / "seedbank"
SCHEMA, QUERIES, DATA = str(BANK / "schema.pg"), str(BANK / "queries"), str(BANK / "seed" / "seedbank.jsonl")
GRAPH = "bank.omni"
READ = 'query banked() { match { $a: Accession { status: "banked" } } return { $a.code } limit 3 }'
ROUNDS = 10
HELP_BAR_MS, CHECK_BAR_MS, WARM_BAR_MS = 100, 350, 250
READ_BAR = 1.35  # times the processor time of `import lance`


@dataclass(slots=True)
class Measured:
    """A command, its bar in milliseconds or in times of `import lance`, and what it took in each round."""

    name: str
    command: list[str]
    bar_ms: float | None = None
    bar_ratio: float | None = None
    times_ms: list[float] = field(default_factory=list)

    @property
    def least_ms(self) -> float:
        """The least of the rounds."""
        return min(self.times_ms)


def main() -> None:
    """Make a small graph, measure, and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        environment |= {"XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        _make_graph(folder)
        lance = Measured("import lance", [sys.executable, "-c", "import lance"])
        everything = [lance, *_commands()]
        with _warm_server(folder, environment):
            for number in range(1 + rounds):
                for measured in everything:
                    cpu_ms = _cpu_ms(measured.command, folder, environment)
                    if number > 0:
                        measured.times_ms.append(cpu_ms)
    for measured in everything:
        print(_line(measured, lance.least_ms))


def _commands() -> list[Measured]:
    """Return what is measured beside `import lance`."""
    return [
        _ours("--help", bar_ms=HELP_BAR_MS),
        _ours("version", bar_ms=HELP_BAR_MS),
        _ours("lint", "--schema", SCHEMA, "--query", QUERIES, bar_ms=CHECK_BAR_MS),
        _ours("fmt", "--check", SCHEMA, QUERIES, bar_ms=CHECK_BAR_MS),
        _ours("query", "-e", READ, "--store", GRAPH, "--no-warm", bar_ratio=READ_BAR),
        _ours("commit", "list", GRAPH, "--no-warm", bar_ratio=READ_BAR),
        _ours("branch", "list", GRAPH, "--no-warm", bar_ratio=READ_BAR),
        _ours("query", "-e", READ, "--store", GRAPH, bar_ms=WARM_BAR_MS, word=" (warm)"),
        _ours("commit", "list", GRAPH, bar_ms=WARM_BAR_MS, word=" (warm)"),
    ]


def _ours(
    *arguments: str, bar_ms: float | None = None, bar_ratio: float | None = None, word: str = ""
) -> Measured:
    words = [word for word in arguments[:2] if word.isalpha() or word == "--help"]
    return Measured(f"omnigraph {' '.join(words)}{word}", [PROGRAM, *arguments], bar_ms, bar_ratio)


@contextmanager
def _warm_server(folder: str, environment: dict[str, str]) -> Iterator[None]:
    """Keep the graph open for the commands that ask for that."""
    serve = [PROGRAM, "serve", GRAPH]
    subprocess.run([*serve, "--background"], cwd=folder, env=environment, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run([*serve, "--stop"], cwd=folder, env=environment, check=True, capture_output=True)


def _make_graph(folder: str) -> None:
    for arguments in (
        ["init", GRAPH, "--schema", SCHEMA],
        ["load", GRAPH, "--data", DATA, "--mode", "append"],
    ):
        subprocess.run([PROGRAM, *arguments], cwd=folder, check=True, capture_output=True)


def _cpu_ms(command: list[str], folder: str, environment: dict[str, str]) -> float:
    """Return the user and system time of a process that ends well."""
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=nowhere, stderr=nowhere)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return (usage.ru_utime + usage.ru_stime) * 1_000


def _line(measured: Measured, lance_ms: float) -> str:
    ratio = measured.least_ms / lance_ms
    line = f"{measured.name:28} {measured.least_ms:6.0f} ms of CPU   {ratio:5.2f} x import lance"
    if measured.bar_ms is not None:
        return f"{line}   bar {measured.bar_ms} ms   {_verdict(measured.least_ms <= measured.bar_ms)}"
    if measured.bar_ratio is not None:
        return f"{line}   bar {measured.bar_ratio} x   {_verdict(ratio <= measured.bar_ratio)}"
    return line


def _verdict(is_passed: bool) -> str:
    return "pass" if is_passed else "FAIL"


if __name__ == "__main__":
    main()
