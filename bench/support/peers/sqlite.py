"""SQLite, for reference, as an engine of the benchmarks."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from bench.support.questions import Values
from bench.support.social import Social

SCHEMA = """
CREATE TABLE person(id INTEGER PRIMARY KEY, handle TEXT, name TEXT, age INTEGER, city TEXT, bio TEXT);
CREATE TABLE knows(src INTEGER, dst INTEGER, since INTEGER);
"""
INDEXES = """
CREATE UNIQUE INDEX person_handle ON person(handle);
CREATE INDEX person_city ON person(city, age);
CREATE UNIQUE INDEX knows_out ON knows(src, dst);
CREATE INDEX knows_in ON knows(dst, src);
CREATE VIRTUAL TABLE bios USING fts5(bio, content='person', content_rowid='id');
INSERT INTO bios(bios) VALUES('rebuild');
ANALYZE;
"""
TEXTS = {
    "point lookup": "SELECT name, age FROM person WHERE handle = :handle",
    "filtered count": "SELECT count(*) FROM person WHERE city = :city AND age >= :age",
    "one hop with filter": (
        "SELECT f.handle, f.age FROM person p JOIN knows k ON k.src = p.id JOIN person f ON f.id = k.dst "
        "WHERE p.handle = :handle AND f.age >= :age"
    ),
    "two hops distinct": (
        "SELECT g.handle, count(*) FROM person p JOIN knows k ON k.src = p.id JOIN knows l ON l.src = k.dst "
        "JOIN person g ON g.id = l.dst WHERE p.handle = :handle GROUP BY g.id"
    ),
    # Pairs of person and distance are few at three hops; the start itself does not count.
    "reach 1..3": (
        "WITH RECURSIVE reached(id, hops) AS (SELECT id, 0 FROM person WHERE handle = :handle UNION "
        "SELECT k.dst, hops + 1 FROM reached JOIN knows k ON k.src = reached.id WHERE hops < 3) "
        "SELECT count(DISTINCT id) - 1 FROM reached"
    ),
    "join with group-by": (
        "SELECT p.city, count(*), avg(f.age) FROM knows k JOIN person p ON p.id = k.src "
        "JOIN person f ON f.id = k.dst WHERE f.age >= :age GROUP BY p.city"
    ),
    "triangles": (
        "SELECT count(*) FROM person a JOIN knows k ON k.src = a.id JOIN knows l ON l.src = k.dst "
        "JOIN knows m ON m.src = l.dst AND m.dst = a.id WHERE a.city = :city"
    ),
    "anti-join": (
        "SELECT count(*) FROM person p WHERE age >= :age AND NOT EXISTS "
        "(SELECT 1 FROM knows WHERE dst = p.id)"
    ),
    "top degree": (
        "SELECT p.handle, d.degree FROM (SELECT dst, count(*) AS degree FROM knows GROUP BY dst) d "
        "JOIN person p ON p.id = d.dst ORDER BY d.degree DESC, p.handle LIMIT 10"
    ),
    "BM25 top 10": (
        "SELECT p.handle FROM bios JOIN person p ON p.id = bios.rowid WHERE bios MATCH :words "
        "ORDER BY bm25(bios), p.handle LIMIT 10"
    ),
}
BATCH = "SELECT p.handle, p.age FROM json_each(?) k JOIN person p ON p.handle = k.value"


class Sqlite:
    """A database file."""

    name = "sqlite"

    def load(self, folder: Path, data: Social) -> None:
        """Make a database of the data; people get numbers, as one would do."""
        self._connection = connection = sqlite3.connect(folder / "social.sqlite")
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA cache_size = -1000000")  # a gigabyte
        connection.executescript(SCHEMA)
        handles = data.people["handle"].to_pylist()
        numbers = {handle: number for number, handle in enumerate(handles)}
        columns = [data.people[name].to_pylist() for name in ("name", "age", "city", "bio")]
        people = zip(range(len(handles)), handles, *columns, strict=True)
        connection.executemany("INSERT INTO person VALUES(?, ?, ?, ?, ?, ?)", people)
        for batch in data.knows.to_batches(500_000):
            sources, targets, since = (column.to_pylist() for column in batch.columns)
            ends = ([numbers[handle] for handle in side] for side in (sources, targets))
            connection.executemany("INSERT INTO knows VALUES(?, ?, ?)", zip(*ends, since, strict=True))
        connection.executescript(INDEXES)
        connection.commit()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def ask(self, question: str, values: Values) -> Callable[[], object] | None:
        """Return what gives the answer, or none if the engine cannot."""
        connection = self._connection
        if "handles" in values:
            keys = json.dumps(values["handles"])
            return lambda: connection.execute(BATCH, (keys,)).fetchall()
        if question not in TEXTS:
            return None
        text = TEXTS[question]
        given = dict(values)
        if "words" in given:
            given["words"] = " OR ".join(str(given["words"]).split())
        return lambda: connection.execute(text, given).fetchall()
