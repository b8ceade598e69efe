"""An interrupt while rows are read, which the library reports as an error: the caller gets the interrupt."""

import random
import signal
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.core.errors import StorageError
from omnigraph.graph.graph import Graph
from omnigraph.storage.tables.lance_errors import translated
from tests.support.seeds import fixed_seed

ROWS = 100_000
INTERRUPTS = 30
TEXT = "External error: KeyboardInterrupt: "


@pytest.mark.case("engine", 363)
def test_an_interrupt_that_the_library_reports_as_an_error_is_one() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, translated("scan of a table"):
        raise pa.ArrowInvalid(TEXT)

    assert str(caught.value.__cause__) == TEXT


@pytest.mark.slow
@pytest.mark.case("engine", 363)
def test_no_interrupt_of_a_scan_becomes_an_error_of_the_store(tmp_path: Path) -> None:
    chosen, interrupts = random.Random(fixed_seed("INTERRUPT_SEED")), 0
    with omnigraph.init(tmp_path / "g", "node Person { name: String @key age: I64? }") as graph:
        people = pa.table({"name": [f"p{number}" for number in range(ROWS)], "age": range(ROWS)})
        graph.load_tables({"Person": people}, "append")
        while interrupts < INTERRUPTS:
            interrupts += _interrupted(graph, chosen.uniform(0.001, 0.05))
        assert graph.table("Person").num_rows == ROWS


def _interrupted(graph: Graph, after_s: float) -> bool:
    """Read a table while a signal comes after so much work; return whether it came in time."""
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_PROF, after_s)
        graph.table("Person")
        signal.setitimer(signal.ITIMER_PROF, 0)
    except KeyboardInterrupt:
        return True
    except StorageError as error:
        pytest.fail(f"an interrupt became {error}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return False
