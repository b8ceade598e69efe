"""Doltlite as the peer of the merge benchmark: a program that is told what to do, a line of JSON at a time.

It is a process of its own because its library has to take the place of SQLite before anything loads that.
"""

# ruff: noqa: I001 - the order of the imports is the point
import doltlite

import json
import sqlite3
import sys
from time import perf_counter, process_time


class Database:
    """One table in a file, with branches."""

    def __init__(self, path: str, synchronous: str) -> None:
        """Make an empty database."""
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._ask(f"PRAGMA synchronous = {synchronous}")
        self._ask("CREATE TABLE item(key TEXT PRIMARY KEY, value INTEGER, label TEXT)")

    def version(self) -> str:
        """Return the version of the library."""
        return f"doltlite {doltlite.__version__}, SQLite {sqlite3.sqlite_version}"

    def load(self, rows: int) -> None:
        """Fill the table and commit."""
        values = ((f"{number:08d}", number, f"label {number}") for number in range(rows))
        self._ask("BEGIN")
        self._connection.executemany("INSERT INTO item VALUES(?, ?, ?)", values)
        self._ask("COMMIT")
        self._ask("SELECT dolt_commit('-A', '-m', 'load')")

    def edit(self, branch: str, value: int, commits: list[list[str]]) -> None:
        """Make a branch of main and change rows on it, in so many commits."""
        self._ask("SELECT dolt_checkout('main')")
        self._ask("SELECT dolt_branch(?)", branch)
        self._ask("SELECT dolt_checkout(?)", branch)
        for keys in commits:
            self._ask("BEGIN")
            text = "UPDATE item SET value = ? WHERE key = ?"
            self._connection.executemany(text, [(value, key) for key in keys])
            self._ask("COMMIT")
            self._ask("SELECT dolt_commit('-A', '-m', 'edit')")

    def merge(self, source: str, target: str) -> tuple[float, float]:
        """Merge a branch into the other; return the milliseconds by the clock and on the processors."""
        self._ask("SELECT dolt_checkout(?)", target)
        wall, cpu = perf_counter(), process_time()
        self._ask("SELECT dolt_merge(?)", source)
        return (perf_counter() - wall) * 1_000, (process_time() - cpu) * 1_000

    def count(self, value: int) -> int:
        """Return how many rows of the branch at hand have a value."""
        ((found,),) = self._ask("SELECT count(*) FROM item WHERE value = ?", value)
        assert isinstance(found, int)
        return found

    def _ask(self, text: str, *values: object) -> list[tuple[object, ...]]:
        return self._connection.execute(text, values).fetchall()


def main() -> None:
    """Do what each line says, and answer with a line."""
    database = Database(sys.argv[1], sys.argv[2])
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(database, name)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
