"""Files that are hardly more than blank lines cost what reading them costs."""

import sys
from pathlib import Path
from types import FrameType

import pytest

from omnigraph.bulk.sources import csv
from omnigraph.core.errors import ValidationError
from tests.support.engine import new_graph


@pytest.mark.case("surfaces", 519)
@pytest.mark.parametrize("blank", ["\n", "\r\n"])
def test_blank_lines_of_csv_are_passed_over_together(blank: str, tmp_path: Path) -> None:
    many, steps = 10_000, 0
    file = tmp_path / "people.csv"
    file.write_text("name\n" + blank * many + "ann\n" + blank * many + "bob,x\n", newline="")

    def count(frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal steps
        steps += frame.f_code.co_filename == csv.__file__

    with new_graph(tmp_path / "graph") as graph:
        sys.setprofile(count)
        try:
            with pytest.raises(ValidationError, match=rf"{2 * many + 3}: the row has 2 fields"):
                graph.load([f"Person={file}"], "append", engine="local")
        finally:
            sys.setprofile(None)

    assert 0 < steps < 1_000
