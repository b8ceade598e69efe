"""What dead bulk operations leave under the graph root: removed by the next one, and only then."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.bulk.connect.leftovers import GRACE_MS, living_token, remove_leftovers
from omnigraph.core.clock import now_micros
from omnigraph.core.ids import UlidSource, new_ulid, ulid_millis
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot

DAY_MICROS = 24 * 3600 * 1_000_000


@pytest.fixture
def sweep(tmp_path: Path) -> Callable[[], list[str]]:
    """Return what removes leftovers, and then tells what is there."""

    def run() -> list[str]:
        assert remove_leftovers(GraphRoot.parse(str(tmp_path)), now_micros=now_micros()) == {}
        return sorted(path.name for path in tmp_path.iterdir())

    return run


def make_spool(root: Path, operation_id: str) -> str:
    folder = root / f"__spool_{operation_id}"
    folder.mkdir()
    (folder / "0.arrow").write_bytes(b"rows")
    return folder.name


def test_a_living_operation_keeps_its_token_and_its_spool(
    tmp_path: Path, sweep: Callable[[], list[str]]
) -> None:
    root = GraphRoot.parse(str(tmp_path))
    operation_id = new_ulid()
    token = f"__executor_probe_{operation_id}"
    adapter = open_adapter(root, Durability.PROCESS)

    with living_token(root, adapter, token, "text"):
        spool = make_spool(tmp_path, operation_id)

        assert sweep() == [token, spool]
        assert adapter.read_text(token) == "text"
    assert sweep() == [spool], "a spool that no token speaks for waits for its grace"


def test_a_dead_operation_loses_both(tmp_path: Path, sweep: Callable[[], list[str]]) -> None:
    operation_id = new_ulid()
    (tmp_path / f"__executor_probe_{operation_id}").write_text("text")
    make_spool(tmp_path, operation_id)
    (tmp_path / "__manifest").mkdir()

    assert sweep() == ["__manifest"]


def test_a_spool_without_a_token_goes_when_it_is_old(tmp_path: Path, sweep: Callable[[], list[str]]) -> None:
    days = GRACE_MS // (24 * 3600 * 1000)
    young = make_spool(tmp_path, UlidSource(lambda: now_micros() - (days - 1) * DAY_MICROS)())
    make_spool(tmp_path, UlidSource(lambda: now_micros() - (days + 1) * DAY_MICROS)())
    strange = make_spool(tmp_path, "of-somebody-else")

    assert sweep() == sorted([young, strange])


def test_an_operation_that_lives_longer_than_the_grace_keeps_its_spool(
    tmp_path: Path, sweep: Callable[[], list[str]]
) -> None:
    root = GraphRoot.parse(str(tmp_path))
    old = UlidSource(lambda: now_micros() - 2 * GRACE_MS * 1_000)()
    token = f"__executor_probe_{old}"

    with living_token(root, open_adapter(root, Durability.PROCESS), token, "text"):
        spool = make_spool(tmp_path, old)

        assert sweep() == [token, spool]


def test_a_ulid_tells_its_millisecond() -> None:
    assert ulid_millis(UlidSource(lambda: 1_234_567_890_123_456)()) == 1_234_567_890_123
    assert ulid_millis("no ulid") is None
