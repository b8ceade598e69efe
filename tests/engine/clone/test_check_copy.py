"""What differs between two graphs is named, and nothing else is."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import BranchNotFound, CloneUnfinished, GraphNotFound
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.operations.clone.check_copy import DifferenceKind, check_copy
from omnigraph.operations.clone.clone import clone
from tests.engine.clone.steps import INSERT, SCHEMA
from tests.support.engine import files, new_graph, reopen

pytestmark = pytest.mark.case("engine", 528)


@pytest.fixture
def target(source: Path, tmp_path: Path) -> Path:
    clone(str(source), str(tmp_path / "copy"))
    return tmp_path / "copy"


def kinds(source: Path, target: Path, *, deep: bool = False) -> dict[DifferenceKind, list[str]]:
    """Return what differs, by kind."""
    found: dict[DifferenceKind, list[str]] = {}
    for difference in check_copy(str(source), str(target), deep=deep).differences:
        found.setdefault(difference.kind, []).append(difference.what)
    return found


def test_a_copy_is_the_same_and_nothing_is_written(source: Path, target: Path, tmp_path: Path) -> None:
    before = files(source), files(target)

    report = omnigraph.check_copy(source, target, deep=True)

    assert report.is_same
    assert report.branches == ("main", "nested", "review")
    assert report.files > 20
    assert (files(source), files(target)) == before
    for name, result in {
        "shallow": omnigraph.clone(source, tmp_path / "shallow", depth=1),
        "folder": Path(shutil.copytree(source, tmp_path / "folder")),
    }.items():
        assert result
        assert kinds(source, tmp_path / name, deep=True) == {}


def test_a_copy_with_less_is_told_by_what_it_lacks(source: Path, tmp_path: Path) -> None:
    with reopen(source) as graph:
        first = graph.commits()[-2].graph_commit_id
    omnigraph.clone(source, tmp_path / "main", branches=["review"])
    omnigraph.clone(source, tmp_path / "early", at=first)

    assert kinds(source, tmp_path / "main") == {DifferenceKind.BRANCH: ["nested"]}
    assert check_copy(str(source), str(tmp_path / "main"), branches=["review"]).is_same
    found = check_copy(str(source), str(tmp_path / "early"), branches=[]).differences
    assert [one.kind for one in found] == [DifferenceKind.HEAD, DifferenceKind.COMMITS]
    assert found[0].target == first
    assert found[1].source is not None
    assert found[1].source.startswith("3 more: ")


def test_graphs_that_went_on_are_told_apart(source: Path, target: Path) -> None:
    with reopen(target) as graph:
        graph.mutate(INSERT, params={"n": "only in the copy"}, branch="review")
        graph.create_branch("only in the copy".replace(" ", "-"))

    found = kinds(source, target)

    assert found[DifferenceKind.HEAD] == found[DifferenceKind.COMMITS] == ["review"]
    assert found[DifferenceKind.BRANCH] == ["only-in-the-copy"]
    assert DifferenceKind.MISSING in found  # the files of that commit are not in the source


def test_another_graph_is_told(source: Path, tmp_path: Path) -> None:
    new_graph(tmp_path / "other", SCHEMA.replace("age", "years")).close()

    found = kinds(source, tmp_path / "other")

    assert {DifferenceKind.GENESIS, DifferenceKind.SCHEMA, DifferenceKind.HEAD} <= found.keys()


def _gone(path: Path) -> None:
    path.unlink()


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def _flipped(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:9] + bytes([content[9] ^ 1]) + content[10:])


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (_gone, DifferenceKind.MISSING),
        (_longer, DifferenceKind.LENGTH),
        (_flipped, DifferenceKind.CONTENT),
    ],
)
def test_a_file_that_is_not_the_same_is_named(
    source: Path, target: Path, side: str, damage: Callable[[Path], None], kind: DifferenceKind
) -> None:
    root = source if side == "source" else target
    victims = [
        max(root.glob("nodes/*/data/*.lance"), key=lambda path: path.stat().st_size),
        max(root.glob("nodes/*/tree/nested*/data/*.lance"), key=lambda path: path.stat().st_size),
    ]
    for victim in victims:
        damage(victim)

    assert kinds(source, target) == {kind: sorted(str(path.relative_to(root)) for path in victims)}


def test_what_is_not_recorded_is_read_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_CHECKSUMS", "off")
    source, target = tmp_path / "source", tmp_path / "copy"
    with new_graph(source, SCHEMA) as graph:
        graph.mutate(INSERT, params={"n": "somebody"})
    clone(str(source), str(target))
    victim = next(target.glob("nodes/*/data/*.lance"))
    _flipped(victim)

    assert kinds(source, target) == {}
    assert kinds(source, target, deep=True) == {DifferenceKind.CONTENT: [str(victim.relative_to(target))]}


def test_a_version_of_the_past_that_is_gone_is_named(source: Path, target: Path) -> None:
    victim = max(target.glob("nodes/*/_versions/*.manifest"), key=lambda path: path.name)
    victim.unlink()

    assert kinds(source, target)[DifferenceKind.MISSING] == [str(victim.relative_to(target))]


def test_what_is_no_graph_is_not_compared(source: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    with failpoint("clone.post_files_pre_control", "raise"), pytest.raises(InjectedFault):
        clone(str(source), str(half))

    with pytest.raises(CloneUnfinished):
        check_copy(str(source), str(half))
    with pytest.raises(GraphNotFound):
        check_copy(str(source), str(tmp_path / "nothing"))
    with pytest.raises(BranchNotFound):
        check_copy(str(source), str(source), branches=["gone"])
