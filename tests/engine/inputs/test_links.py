"""Links inside the folder of a graph, or of a copy: nothing behind them is written, removed or shown."""

import os
import shutil
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.core.errors import AlreadyExistsError, OmnigraphError, StorageError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.storage.control.stored_files import remove_files
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.damage.quarantine import move_to_quarantine
from omnigraph.storage.files.version_file import version_of_file_name
from tests.support.books import fingerprint

SCHEMA = "node P { name: String @key }\nedge K: P -> P"
OLD = "01ARZ3NDEKTSV4RRFFQ69G5FAV"  # of 2016
WRITES = 3


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let versions go at once that were just replaced: no other process reads these graphs."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("links") / "graph"
    with og.init(root, SCHEMA, durability="process") as graph:
        for number in range(WRITES):
            graph.mutate(f'query q() {{ insert P {{ name: "p{number}" }} }}')
        graph.create_branch("side")
    return root


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "graph"))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the user's, with something in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    return folder


# Copies


@pytest.mark.case("engine", 622)
@pytest.mark.parametrize("name", ["nodes", "__manifest", "__branches", "anything"])
def test_a_copy_is_not_written_through_a_link(root: Path, outside: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "copy"
    target.mkdir()
    (target / name).symlink_to(outside)
    before = fingerprint(outside)

    with pytest.raises(AlreadyExistsError, match=name):
        og.clone(root, target)

    assert fingerprint(outside) == before
    assert [path.name for path in target.iterdir()] == [name]


@pytest.mark.case("engine", 622)
@pytest.mark.parametrize("name", ["nodes", "__manifest", "__branches", "__manifest/data"])
def test_a_copy_that_goes_on_is_not_written_through_a_link(
    root: Path, outside: Path, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "copy"
    with failpoint("clone.post_journal_pre_copy", "raise"), pytest.raises(InjectedFault):
        og.clone(root, target)
    (target / name).parent.mkdir(exist_ok=True)
    (target / name).symlink_to(outside)
    before = fingerprint(outside)

    with pytest.raises(AlreadyExistsError, match=name):
        og.clone(root, target)

    assert fingerprint(outside) == before


@pytest.mark.case("engine", 622)
def test_a_link_that_comes_while_a_copy_is_written_is_not_followed(
    root: Path, outside: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    before = fingerprint(outside)

    def link(_progress: object) -> None:
        if not (target / "nodes").exists():
            (target / "nodes").symlink_to(outside)

    with pytest.raises(StorageError, match="'nodes' is a link"):
        og.clone(root, target, progress=link)

    assert fingerprint(outside) == before


@pytest.mark.case("engine", 622)
@pytest.mark.parametrize("kind", ["dangling link", "unfinished file", "pipe"])
def test_a_place_with_anything_in_it_is_not_empty(root: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "copy"
    target.mkdir()
    match kind:
        case "dangling link":
            (target / "x").symlink_to(tmp_path / "nowhere")
        case "unfinished file":
            (target / "a#5").write_text("precious")
        case _:
            os.mkfifo(target / "p")

    with pytest.raises(AlreadyExistsError):
        og.clone(root, target)

    assert len(list(target.iterdir())) == 1


@pytest.mark.case("engine", 622)
def test_what_a_run_leaves_that_died_at_its_first_file_is_no_obstacle(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    target.mkdir()
    (target / "__clone.json#5").write_text("{")

    og.clone(root, target)

    assert og.check_copy(root, target).is_same


@pytest.mark.case("engine", 627)
def test_an_error_of_a_copy_is_not_hidden_by_that_of_its_clearing(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with failpoint("clone.post_journal_pre_copy", "raise"), pytest.raises(InjectedFault):
        og.clone(root, target)
    (target / "nodes").write_text("a file")

    with pytest.raises(StorageError, match="cannot write 'nodes/"):
        og.clone(root, target)


@pytest.mark.case("engine", 627)
def test_a_file_in_the_place_of_the_versions_is_no_finished_copy(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with failpoint("clone.post_journal_pre_copy", "raise"), pytest.raises(InjectedFault):
        og.clone(root, target)
    (target / "__manifest").mkdir()
    (target / "__manifest" / "_versions").write_text("a file")

    with pytest.raises(StorageError, match="_versions"):
        og.clone(root, target)

    assert (target / "__clone.json").exists()


@pytest.mark.case("engine", 626)
@pytest.mark.parametrize("name", ["nodes", "edges", "__manifest"])
def test_a_graph_is_not_made_through_a_link(outside: Path, tmp_path: Path, name: str) -> None:
    place = tmp_path / "new"
    place.mkdir()
    (place / name).symlink_to(outside)
    before = fingerprint(outside)

    with pytest.raises(AlreadyExistsError, match=name):
        og.init(place, SCHEMA)

    assert fingerprint(outside) == before


# Cleanup


def tables(root: Path) -> list[Path]:
    return sorted((root / "nodes").iterdir())


@pytest.mark.case("engine", 623)
def test_a_table_that_is_a_link_keeps_everything(root: Path, whole: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(whole, tmp_path / "other"))
    for folder in tables(root):
        shutil.rmtree(folder)
        folder.symlink_to(other / "nodes" / folder.name)
    before = fingerprint(other)

    with og.open(root) as graph:
        result = graph.cleanup(keep=1)

    assert [row.table_key for row in result.failed] == ["node:P"]
    assert "is a link" in str(result.failed[0].error)
    assert fingerprint(other) == before


@pytest.mark.case("engine", 623)
@pytest.mark.parametrize("name", ["nodes", "nodes/X/_versions", "nodes/X/_deletions", "__manifest/tree"])
def test_a_linked_folder_is_told_and_nothing_behind_it_is_removed(
    root: Path, tmp_path: Path, name: str
) -> None:
    place = root / name.replace("X", tables(root)[0].name)
    aside = tmp_path / "aside"
    if place.exists():
        shutil.move(place, aside)
    else:
        aside.mkdir()
    place.symlink_to(aside)
    before = fingerprint(aside)

    with og.open(root) as graph:
        told = graph.cleanup(keep=1, dry_run=True)
        result = graph.cleanup(keep=1)

    label = "__manifest" if name.startswith("__") else "node:P"
    for found in (told, result):
        assert [row.table_key for row in found.failed] == [label]
        assert f"'{place.relative_to(root)}' is a link" in str(found.failed[0].error)
    assert fingerprint(aside) == before
    assert any(row.old_versions_removed for row in result.tables) or label == "node:P"


@pytest.mark.case("engine", 624)
@pytest.mark.parametrize(
    "name", [f"__quarantine/{OLD}", "_graph_runs.lance", f"__executor_probe_{OLD}", f"__spool_{OLD}"]
)
def test_litter_that_is_a_link_is_a_row_and_the_rest_is_done(root: Path, outside: Path, name: str) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).symlink_to(outside)
    before = fingerprint(outside)

    with og.open(root) as graph:
        result = graph.cleanup(keep=1)

    assert [row.table_key for row in result.failed] == [name]
    assert f"'{name}' is a link" in str(result.failed[0].error)
    assert name not in result.leftovers
    assert any(row.old_versions_removed for row in result.tables)
    assert fingerprint(outside) == before


# Control files


@pytest.mark.case("engine", 625)
@pytest.mark.parametrize(
    "name", ["_schema.pg", "_schema.ir.json", "__schema_state.json", "__branches/side.json", "__numbers.json"]
)
def test_a_control_file_that_is_a_link_is_refused_and_not_shown(root: Path, outside: Path, name: str) -> None:
    (outside / "precious").write_text("secret = 5")
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(outside / "precious")

    with pytest.raises(OmnigraphError) as caught, og.open(root) as graph:
        graph.apply_schema(SCHEMA + "\nnode N { q: String @key }", branch="side", index=False)

    assert name in str(caught.value)
    assert "it is a link, not a file" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.case("engine", 625)
def test_a_folder_of_control_files_that_is_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    shutil.move(root / "__branches", tmp_path / "aside")
    (root / "__branches").symlink_to(tmp_path / "aside")
    before = fingerprint(tmp_path / "aside")

    with pytest.raises(StorageError, match="'__branches' is a link"), og.open(root) as graph:
        graph.create_branch("other")

    assert fingerprint(tmp_path / "aside") == before


# Below every verb


@pytest.mark.case("engine", 623)
def test_no_file_behind_a_link_is_removed_whoever_asks(root: Path, outside: Path) -> None:
    (root / "linked").symlink_to(outside)

    with pytest.raises(StorageError, match="'linked' is a link"):
        remove_files(GraphRoot.parse(str(root)), ["linked/precious"])

    assert (outside / "precious").exists()


@pytest.mark.case("engine", 625)
def test_nothing_is_moved_to_a_quarantine_that_is_a_link(root: Path, outside: Path) -> None:
    (root / "__quarantine").symlink_to(outside)
    before = fingerprint(root / "__manifest")

    with pytest.raises(StorageError, match="'__quarantine' is a link"):
        move_to_quarantine(str(root), "__manifest", [2], OLD)

    assert fingerprint(root / "__manifest") == before


@pytest.mark.case("engine", 625)
def test_nothing_is_put_back_through_a_link(root: Path, tmp_path: Path) -> None:
    versions = root / "__manifest" / "_versions"
    newest = max(version for path in versions.iterdir() if (version := version_of_file_name(path.name)))
    move_to_quarantine(str(root), "__manifest", [newest], OLD)
    shutil.move(versions, tmp_path / "aside")
    versions.symlink_to(tmp_path / "aside")
    before = fingerprint(tmp_path / "aside")

    with pytest.raises(StorageError, match="_versions' is a link"):
        og.restore_quarantined(root, OLD)

    assert fingerprint(tmp_path / "aside") == before
