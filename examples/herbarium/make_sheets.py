"""Write the tables of a large herbarium as Parquet, one file for each type: the same rows every time."""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SEED = 1_753
TAXA, COLLECTORS, SHEETS, ALIKE = 3_000, 5_000, 200_000, 800_000
COUNTRIES = ("Chile", "Ethiopia", "Georgia", "Japan", "Morocco", "Norway", "Spain", "Turkey")
GROUP_ROWS = 131_072

Numbers = npt.NDArray[np.int64]


def main() -> None:
    """Write everything into the folder that is given, and say how much that is."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    sheets = np.arange(SHEETS)
    shown = _skewed(rng, TAXA, SHEETS)
    tables = {
        "Taxon": {"name": _named("taxon ", np.arange(TAXA))},
        "Collector": {
            "code": _named("C", np.arange(COLLECTORS)),
            "name": _named("Collector ", rng.permutation(COLLECTORS)),
        },
        "Sheet": {
            "barcode": _named("HB", sheets),
            "year": pa.array(rng.integers(1780, 2026, SHEETS), pa.int32()),
            "country": pa.array(COUNTRIES).take(pa.array(_skewed(rng, len(COUNTRIES), SHEETS))),
        },
        "CollectedBy": {
            "from": _named("HB", sheets),
            "to": _named("C", _skewed(rng, COLLECTORS, SHEETS)),
        },
        "Shows": {"from": _named("HB", sheets), "to": _named("taxon ", shown)},
        "LooksLike": _alike(rng, shown),
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=GROUP_ROWS)
    nodes = TAXA + COLLECTORS + SHEETS
    sys.stdout.write(f"{nodes:,} nodes and {2 * SHEETS + ALIKE:,} edges\n")


def _alike(rng: np.random.Generator, shown: Numbers) -> dict[str, pa.Array]:
    """Return pairs of sheets, most of them of one taxon: their neighbours in the order of taxa."""
    order = np.argsort(shown, kind="stable")
    places = rng.integers(0, SHEETS, ALIKE)
    others = (places + rng.integers(1, 40, ALIKE)) % SHEETS
    return {
        "from": _named("HB", order[places]),
        "to": _named("HB", order[others]),
        "score": pa.array(rng.random(ALIKE), pa.float32()),
    }


def _skewed(rng: np.random.Generator, kinds: int, count: int) -> Numbers:
    """Return random numbers below `kinds`, the lower the more frequent."""
    ends = np.cumsum(1.0 / np.sqrt(np.arange(1, kinds + 1)))
    return np.searchsorted(ends, rng.random(count) * ends[-1])


def _named(prefix: str, numbers: Numbers) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.utf8()), "")


if __name__ == "__main__":
    main()
