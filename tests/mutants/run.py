"""Break the guards of the list one at a time, and see which of them no test misses: `make mutants`.

M1  The work tree is read and never written: everything happens in copies, so a killed run leaves nothing.
M2  The tests named by the list pass without a break. A test that fails anyway notices nothing.
M3  A guard is killed by a test that fails. A break that nothing can be run with is an error of the list.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutants.guards import PACKAGE, REPOSITORY, SOURCE, Guard, GuardError, read_guards

RUN_S_MAX = 900  # a test that waits for ever fails by its own timeout long before
_SKIPPED = shutil.ignore_patterns(".*", "build", "dist", "htmlcov", "bench")
_PASSED, _FAILED = 0, 1  # the exit codes of pytest that say something about tests
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", re.MULTILINE)


class Verdict(StrEnum):
    """What became of a broken guard."""

    KILLED = "killed"
    ACCEPTED = "accepted"
    SURVIVED = "SURVIVED"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One guard, and how its tests took the break."""

    guard: Guard
    verdict: Verdict
    note: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.verdict:8} {self.seconds:5.1f} s  {self.guard.id}: {self.note}"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of pytest: its exit code, none after too long a time, and what it printed."""

    code: int | None
    printed: str

    @property
    def failures(self) -> list[str]:
        """The tests that failed."""
        return _FAILURE.findall(self.printed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the guards whose id or file contains a text, and return the status of the process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pattern", nargs="?", default="", help="a part of an id or of a file")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="guards to break at one time")
    options = parser.parse_args(arguments)
    guards = [found for found in read_guards() if options.pattern in f"{found.file} {found.id}"]
    if not guards:
        raise SystemExit(f"no guard is called {options.pattern!r}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="omnigraph-mutants-") as folder:
        outcomes = Workshop(Path(folder)).run(guards, options.jobs)
    count = {verdict: sum(found.verdict is verdict for found in outcomes) for verdict in Verdict}
    totals = ", ".join(f"{number} {verdict}" for verdict, number in count.items() if number)
    say(f"{len(outcomes)} guards: {totals}; {time.monotonic() - started:.0f} s")
    return 1 if count[Verdict.SURVIVED] or count[Verdict.ERROR] else 0


class Workshop:
    """A copy of the repository to run tests in, and copies of the package to break (M1)."""

    def __init__(self, folder: Path) -> None:
        """Copy what the tests need."""
        self._folder = folder
        self._running: set[subprocess.Popen[str]] = set()
        self._repository = folder / "repository"
        shutil.copytree(REPOSITORY, self._repository, ignore=_SKIPPED)

    def run(self, guards: Sequence[Guard], jobs: int) -> list[Outcome]:
        """Run the tests of all guards unbroken (M2), then those of each guard, broken."""
        for guard in guards:
            guard.mutated(self._text(guard))  # before minutes are spent
        started = time.monotonic()
        run = self._pytest(self._repository / "src", _distinct(guards), folder="baseline", is_baseline=True)
        if run.code != _PASSED:
            say(run.printed)
            raise SystemExit("tests of the list fail with nothing broken")
        say(f"the tests pass with nothing broken; {time.monotonic() - started:.0f} s")
        outcomes = []
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for outcome in pool.map(self._try, guards):
                    say(str(outcome))
                    outcomes.append(outcome)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in tuple(self._running):
                    _end(process)
                raise
        return outcomes

    def _try(self, guard: Guard) -> Outcome:
        started = time.monotonic()
        source = self._folder / guard.id / "src"
        shutil.copytree(self._repository / "src", source)
        path = source.parent / PACKAGE / guard.file
        path.write_text(guard.mutated(self._text(guard)), encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()  # it tells its age in seconds
        run = self._pytest(source, guard.tests, folder=guard.id)
        shutil.rmtree(source.parent)
        verdict, note = judge(guard, run)
        return Outcome(guard, verdict, note, time.monotonic() - started)

    def _text(self, guard: Guard) -> str:
        path = self._repository / PACKAGE / guard.file
        if not path.is_file():
            raise GuardError(f"{guard.id}: there is no {guard.file}")
        return path.read_text(encoding="utf-8")

    def _pytest(self, source: Path, tests: Iterable[str], *, folder: str, is_baseline: bool = False) -> Run:
        options = ["-q", "--no-header", "--tb=short", "-rfE", "-p", "no:cacheprovider"]
        options += ["-p", "tests.mutants.imported", "--basetemp", str(self._folder / f"{folder}-files")]
        options += [] if is_baseline else ["--exitfirst"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=self._repository,
            env={**os.environ, "PYTHONPATH": str(source), SOURCE: str(source)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            printed, _ = process.communicate(timeout=None if is_baseline else RUN_S_MAX)
        except subprocess.TimeoutExpired:
            return Run(None, "")
        finally:
            self._running.discard(process)
            _end(process)
            shutil.rmtree(self._folder / f"{folder}-files", ignore_errors=True)
        return Run(process.returncode, printed)


def judge(guard: Guard, run: Run) -> tuple[Verdict, str]:
    """Return what a run says about the guard that was broken in it (M3)."""
    if run.code is None:
        return Verdict.ERROR, f"its tests did not end in {RUN_S_MAX} s"
    if run.code not in {_PASSED, _FAILED}:
        return Verdict.ERROR, f"its tests could not be run:\n{run.printed}"
    if run.code == _FAILED and guard.survives:
        return Verdict.ERROR, f"it is killed by {run.failures[0]}: remove its reason from the list"
    if run.code == _FAILED:
        return Verdict.KILLED, run.failures[0] if run.failures else "by an error at the end of the run"
    if guard.survives:
        return Verdict.ACCEPTED, guard.survives
    return Verdict.SURVIVED, f"{guard.file}: no test notices"


def _distinct(guards: Iterable[Guard]) -> list[str]:
    return sorted({test for guard in guards for test in guard.tests})


def _end(process: "subprocess.Popen[str]") -> None:
    """End a run with every process that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
