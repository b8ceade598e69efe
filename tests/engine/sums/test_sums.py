"""Sums as they are taken, written as lines and read back."""

from pathlib import Path

import pytest

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.files.sums import READ_BYTES, FileSum, Summer, decode_sums, encode_sums
from omnigraph.storage.files.version_file import version_file_name

CHECKSUM = "0123456789abcdef"


@pytest.mark.parametrize(
    "path",
    [
        "nodes/1-2/data/abc.lance",
        "nodes/1-2/data/abc.bin",
        "nodes/1-2/data/sub/abc.lance",
        "nodes/1-2/tree/june-X/_deletions/0-1-2.arrow",
        "nodes/1-2/_deletions/0-1-2.bin",
        "nodes/1-2/_transactions/3-abc.txn",
        "nodes/1-2/_indices/abc/page_data.lance",
        "nodes/1-2/_refs/branches/june.json",
        f"nodes/1-2/{version_file_name(7)}",
        "nodes/1-2/_versions/odd.manifest",
    ],
)
def test_a_sum_comes_back_as_it_was_recorded(path: str) -> None:
    recorded = (FileSum(path, 5, CHECKSUM), FileSum("__manifest/data/z.lance", 6, CHECKSUM))

    assert tuple(decode_sums(encode_sums(recorded) or ())) == recorded


@pytest.mark.parametrize(
    "line",
    [
        "",
        "0123 5 data/x",
        f"{CHECKSUM} five data/x",
        f"{CHECKSUM} -5 data/x",
        f"{CHECKSUM} 5 ../../victim/x",
        f"{CHECKSUM} 5 /etc/passwd",
    ],
)
def test_a_line_that_is_no_sum_of_a_file_of_the_graph_is_refused(line: str) -> None:
    with pytest.raises(InvariantViolation):
        FileSum.of_text(line)


def test_sums_of_an_algorithm_that_is_not_known_say_nothing() -> None:
    assert list(decode_sums(["crc99", "in nodes/1-2", "written by a later build"])) == []


def test_a_file_is_summed_to_its_end(tmp_path: Path) -> None:
    for name, last in (("one", b"a"), ("other", b"b")):
        (tmp_path / name).write_bytes(bytes(READ_BYTES) + last)

    one, other = Summer(str(tmp_path)).sum(str(tmp_path / name) for name in ("one", "other"))

    assert one.length == other.length == READ_BYTES + 1
    assert one.checksum != other.checksum
