"""The most memory of a load, in a process that does nothing else.

The heap is asked of the JVM itself, which notes the peak of each of its pools; their sum is never below the
true peak. It counts garbage that nobody has collected yet, so the heap is kept small: what then grows with
the input is what the load holds.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.support.load_data import Files, Size
from bench.support.load_spark import SparkSide

SMALL_HEAP = "1g"


@dataclass(frozen=True, slots=True)
class Peaks:
    """The most memory of the Python driver and of the JVM's heap, in megabytes, and the seconds it took."""

    driver: float
    heap: float
    seconds: float


def load_peaks(folder: Path, schema: str, files: Files, size: Size, cores: int) -> Peaks:
    """Load Parquet files into a new graph, and return the peaks of this process and of its JVM."""
    side = SparkSide(folder, cores, SMALL_HEAP)
    pools = _heap_pools(side)
    for pool in pools:
        pool.resetPeakUsage()
    inputs = [f"Person={files.people}", f"Knows={files.knows}"]
    loaded = side.load(schema, inputs, rows=size.people + size.edges)
    heap = sum(pool.getPeakUsage().getUsed() for pool in pools)
    driver = _peak_resident()
    side.close()
    return Peaks(driver, heap / 2**20, loaded.seconds)


def _heap_pools(side: SparkSide) -> list[Any]:
    factory = side.spark.sparkContext._jvm.java.lang.management.ManagementFactory
    return [pool for pool in factory.getMemoryPoolMXBeans() if pool.getType().name() == "HEAP"]


def _peak_resident() -> float:
    """Return the most resident memory of this process in megabytes.

    Where Linux says it for the program itself: the figure of `getrusage` begins with that of the parent.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts bytes
