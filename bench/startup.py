"""How much processor time the program takes before it does anything: `--help` and `version`.

Processor time of a process of its own, the least of several runs, so that a busy machine counts for little.
Numbers are reported and never fail: run it with `make bench`, or alone with a number of runs.
"""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("omnigraph")
RUNS = 10
HELP_BAR_MS = 100


def main() -> None:
    """Measure, and print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    for arguments, bar_ms in ((["--help"], HELP_BAR_MS), (["version"], HELP_BAR_MS)):
        least_ms = min(_cpu_ms([str(PROGRAM), *arguments]) for _ in range(runs))
        verdict = "pass" if least_ms <= bar_ms else "FAIL"
        print(f"omnigraph {' '.join(arguments):10} {least_ms:6.0f} ms of CPU   bar {bar_ms} ms   {verdict}")


def _cpu_ms(command: list[str]) -> float:
    """Return the user and system time of a process that ends well."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return (usage.ru_utime + usage.ru_stime) * 1_000


if __name__ == "__main__":
    main()
