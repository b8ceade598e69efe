"""What else could be done with the files of a load: another graph database, and plain Lance tables.

Each runs in a process of its own and returns its seconds.
"""

import importlib
import os
import shutil
from pathlib import Path
from time import perf_counter

import pyarrow.parquet as pq

from bench.support.load_data import Files

BATCH_ROWS = 65_536


def copy_seconds(module: str, folder: Path, files: Files) -> float:
    """Copy Parquet files into a new database of Kuzu's kind, with as many threads as there are cores."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    library = importlib.import_module(module)
    connection = library.Connection(library.Database(str(folder / "db")), num_threads=os.cpu_count())
    connection.execute(
        "CREATE NODE TABLE Person("
        "handle STRING PRIMARY KEY, name STRING, age INT32, city STRING, score DOUBLE)"
    )
    connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, since INT32, weight DOUBLE)")
    started = perf_counter()
    connection.execute(f'COPY Person FROM "{files.people}"')
    connection.execute(f'COPY Knows FROM "{files.knows}"')
    seconds = perf_counter() - started
    counted = connection.execute("MATCH ()-[k:Knows]->() RETURN count(*)").get_next()[0]
    assert counted == pq.read_metadata(files.knows).num_rows, f"{module} has {counted} edges"
    connection.close()
    shutil.rmtree(folder)
    return seconds


def lance_seconds(folder: Path, files: Files) -> float:
    """Write the rows of Parquet files as Lance tables, unchecked."""
    import lance

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started = perf_counter()
    for path in (files.people, files.knows):
        file = pq.ParquetFile(path)
        lance.write_dataset(
            file.iter_batches(BATCH_ROWS), str(folder / f"{path.stem}.lance"), schema=file.schema_arrow
        )
    seconds = perf_counter() - started
    shutil.rmtree(folder)
    return seconds
