"""What the library lists versions for: a commit on an old version finds those that came after it."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation

from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables import shapes

ROWS = pa.table({"x": [1, 2, 3]})


@pytest.fixture
def base(tmp_path: Path) -> LanceDataset:
    """The first version of a dataset, whose second one was trimmed below a third."""
    made = lance.write_dataset(ROWS, tmp_path / "table", enable_stable_row_ids=True)
    for version in (1, 2):
        added = shapes.addition(made, shapes.write_rows(made, ROWS))
        made = LanceDataset.commit(made, added, read_version=version, max_retries=0)
    (tmp_path / "table" / version_file_name(2)).unlink()
    return lance.dataset(tmp_path / "table", version=1)


@pytest.mark.case("engine", 873)
def test_guard_an_update_on_a_version_below_a_trimmed_one_is_refused(base: LanceDataset) -> None:
    update = shapes.addition(base, shapes.write_rows(base, ROWS))

    with pytest.raises(OSError, match="preempted by concurrent transaction"):
        LanceDataset.commit(base, update, read_version=1, max_retries=0)

    assert lance.dataset(base.uri).version == 3


@pytest.mark.case("engine", 873)
def test_guard_a_strict_overwrite_that_lists_nothing_lands_where_nobody_sees_it(base: LanceDataset) -> None:
    fragments = [fragment.metadata for fragment in base.get_fragments()]
    overwrite = LanceOperation.Overwrite(base.lance_schema, fragments)

    landed = LanceDataset.commit(base, overwrite, read_version=1, max_retries=0)

    assert landed.version == 2
    assert lance.dataset(base.uri).version == 3
