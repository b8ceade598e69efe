"""What `verify` says of parts that are gone although others prove them, and whether its ways out work."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.graph.graph import Graph
from omnigraph.operations.verify.report import FindingKind, VerifyFinding
from tests.support.engine import copy_of
from tests.support.protocol import give_up, new_graph
from tests.support.protocol import write_everywhere as write
from tests.support.seam import internals

AUDIT = "_graph_commit_recoveries.lance"
WITH_MORE = "\nnode Added { name: String @key }\n"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a recovery behind it, a branch, and schemas of both that took numbers."""
    place = tmp_path_factory.mktemp("lost") / "graph"
    new_graph(place).close()
    give_up(place, "insert", "P5")
    with omnigraph.open(place) as graph:
        assert len(graph.recoveries()) == 1
        graph.create_branch("june/1")
        schema = graph.schema()
        graph.apply_schema(schema + WITH_MORE)
        graph.apply_schema(schema + WITH_MORE.replace("Added", "Other"), branch="june/1")
        assert graph.verify().is_whole
    return place


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A copy of it, for one test."""
    return copy_of(template, tmp_path / "graph")


def findings(root: Path) -> list[VerifyFinding]:
    with omnigraph.open(root, mode="ro") as graph:
        found = graph.verify()
    assert found.is_whole == (not found.findings)
    assert all(finding.what and finding.meaning and finding.remedy for finding in found.findings)
    return list(found.findings)


def audit_files(root: Path) -> Iterator[Path]:
    yield from (root / AUDIT / "data").iterdir()
    yield min((root / AUDIT / "_versions").glob("*.manifest"))  # the newest has the smallest name


@pytest.mark.case("engine", 723)
@pytest.mark.parametrize("damage", ["cut", "flipped", "removed"])
def test_a_damaged_file_of_the_audit_is_found(root: Path, damage: str, tmp_path: Path) -> None:
    for number, file in enumerate(audit_files(root)):
        kept = file.read_bytes()
        places = range(0, len(kept), max(1, len(kept) // 12)) if damage == "flipped" else [len(kept) // 2]
        for place in places:
            if damage == "cut":
                file.write_bytes(kept[:place])
            elif damage == "flipped":
                file.write_bytes(kept[:place] + bytes([kept[place] ^ 0x40]) + kept[place + 1 :])
            else:
                file.rename(tmp_path / f"away{number}")
            found = findings(root)
            file.write_bytes(kept)

            assert {finding.kind for finding in found} <= {FindingKind.FILE, FindingKind.AUDIT}, place
            assert any(finding.where.startswith(AUDIT) for finding in found), (file, place)
    assert findings(root) == []


@pytest.mark.case("engine", 723)
def test_an_audit_that_is_gone_is_missed_by_the_commits_of_recovery(root: Path, tmp_path: Path) -> None:
    shutil.move(root / AUDIT, tmp_path / "away")
    [found] = findings(root)
    assert (found.kind, found.where) == (FindingKind.AUDIT, AUDIT)
    assert "no row of 1 recoveries" in found.what

    shutil.move(tmp_path / "away", root / AUDIT)
    assert findings(root) == []
    omnigraph.clone(root, tmp_path / "copy")
    with omnigraph.open(root, mode="ro") as graph:
        head = graph.commits(limit=1)[0].graph_commit_id
    omnigraph.clone(root, tmp_path / "at", at=head)
    assert findings(tmp_path / "copy") == findings(tmp_path / "at") == []


@pytest.mark.case("engine", 723)
def test_an_audit_that_cannot_be_read_is_moved_away_and_begun_anew(root: Path, tmp_path: Path) -> None:
    for file in audit_files(root):
        file.write_bytes(b"x" * 40)
    give_up(root, "insert", "P5")
    with pytest.raises(omnigraph.OmnigraphError):
        omnigraph.open(root)
    [remedy] = {finding.remedy for finding in findings(root) if finding.kind is FindingKind.AUDIT}
    assert "move that folder out of the graph" in remedy

    shutil.move(root / AUDIT, tmp_path / "away")
    with omnigraph.open(root) as graph:
        assert len(graph.recoveries()) == 1
        write(graph)


@pytest.mark.case("engine", 724)
def test_a_lost_control_object_is_found_and_put_back(root: Path) -> None:
    control = root / "__branches" / "june%2F1.json"
    before = control.read_text()
    control.unlink()

    [found] = findings(root)
    assert (found.kind, found.where) == (FindingKind.CONTROL_FILE, "__branches/june%2F1.json")
    assert "cleanup" in found.meaning
    copy = found.remedy.split("'")[1]
    control.write_text((root / copy).read_text().partition("\n")[2])

    assert control.read_text() == before
    assert findings(root) == []
    with omnigraph.open(root) as graph:
        assert graph.branches() == ["june/1", "main"]
        graph.delete_branch("june/1")
    assert findings(root) == []


@pytest.mark.case("engine", 725)
@pytest.mark.parametrize("damage", ["removed", "behind", "cut"])
def test_a_lost_counter_of_numbers_is_found_and_made_anew(root: Path, damage: str) -> None:
    file = root / "__numbers.json"
    before = json.loads(file.read_text())["next"]
    if damage == "removed":
        file.unlink()
    else:
        file.write_text(json.dumps({"next": 3}) if damage == "behind" else '{"ne')

    [found] = findings(root)
    assert (found.kind, found.where) == (FindingKind.CONTROL_FILE, "__numbers.json")
    if damage == "cut":
        file.unlink()
        [found] = findings(root)
    file.write_text(found.remedy[found.remedy.index("{") :])
    assert json.loads(file.read_text())["next"] == before
    assert findings(root) == []
    with omnigraph.open(root) as graph:
        graph.apply_schema(graph.schema() + WITH_MORE.replace("Added", "Third"))
        assert len(_numbers(graph, "main") & _numbers(graph, "june/1")) == len(_numbers(graph, "main")) - 2


def _numbers(graph: Graph, branch: str) -> set[int]:
    """Return the numbers of the tables that a branch shows."""
    opened = internals(graph)
    return {entry.identity.stable_table_id for entry in opened.state(branch).tables.entries()}
