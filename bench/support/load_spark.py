"""Loads on Spark, timed by stage, and what Spark alone does with the same rows."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import omnigraph
from bench.support.load_data import Files
from omnigraph.bulk.connect.progress import ProgressEvent
from omnigraph.bulk.connect.session import SparkSettings, close_session, open_session
from omnigraph.operations.load.model import OnError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAP = "2g"
JSON_SCHEMAS = {
    "people": "type string, data struct<handle:string,name:string,age:int,city:string,score:double>",
    "knows": "edge string, `from` string, `to` string, data struct<since:int,weight:double>",
}


@dataclass(slots=True)
class StageTimes:
    """Takes the events of a load; a stage that comes again adds to its seconds."""

    seconds: dict[str, float] = field(default_factory=dict)

    def __call__(self, event: ProgressEvent) -> None:
        """Take one event."""
        if event.is_done:
            name = event.stage.value
            self.seconds[name] = self.seconds.get(name, 0.0) + event.seconds


@dataclass(frozen=True, slots=True)
class Loaded:
    """One load: its seconds up to the commit, those of its stages, and those of the indexes behind it."""

    seconds: float
    stages: dict[str, float]
    index_seconds: float = 0.0


class SparkSide:
    """One warm session: loads of ours, and plain writes of Spark."""

    def __init__(self, folder: Path, cores: int, heap: str = HEAP) -> None:
        """Start the session; what is written goes to a folder."""
        self._folder = folder
        settings = SparkSettings(f"local[{cores}]", options={"spark.driver.memory": heap})
        self.spark: SparkSession = open_session(settings)

    def close(self) -> None:
        """Stop the session."""
        close_session()

    def load(
        self, schema: str, inputs: list[str], *, rows: int, index: bool = False, wrong: int = 0
    ) -> Loaded:
        """Load files into a new graph, as one commit; rows that are wrong are left out if there are any."""
        root = self._folder / "graph.omni"
        shutil.rmtree(root, ignore_errors=True)
        with omnigraph.init(root, schema) as graph:
            times = StageTimes()
            started = perf_counter()
            on_error: OnError = "skip" if wrong else "fail"
            result = graph.load(
                inputs, "append", engine="spark", index=index, progress=times, on_error=on_error
            )
            seconds = perf_counter() - started
        loaded = sum(count for _, count in result.tables)
        assert loaded == rows, f"{loaded} rows were loaded, not {rows}"
        assert result.rejected_rows == wrong, f"{result.rejected_rows} rows were left out, not {wrong}"
        shutil.rmtree(root)
        built = times.seconds.get("index", 0.0)
        return Loaded(seconds - built, times.seconds, built)

    def write_parquet(self, files: Files) -> float:
        """Let Spark read the Parquet files and write their rows as Parquet; return the seconds."""
        return self._write(lambda path: self.spark.read.parquet(str(path)), files)

    def write_json(self, files: Files) -> float:
        """Let Spark find out the columns of NDJSON files, read them and write their rows as Parquet."""
        return self._write(lambda path: self.spark.read.json(str(path)), files)

    def write_typed_json(self, files: Files) -> float:
        """Do the same with the columns given, so that the files are read once."""
        return self._write(
            lambda path: self.spark.read.schema(JSON_SCHEMAS[path.stem]).json(str(path)), files
        )

    def _write(self, read: "Callable[[Path], object]", files: Files) -> float:
        out = self._folder / "spark-out"
        shutil.rmtree(out, ignore_errors=True)
        started = perf_counter()
        for path in (files.people, files.knows):
            read(path).write.parquet(str(out / path.stem))  # type: ignore[attr-defined]
        seconds = perf_counter() - started
        shutil.rmtree(out)
        return seconds
