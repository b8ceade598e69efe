"""Nothing moves a HEAD but the few calls that are listed here."""

import ast
import inspect
from pathlib import Path

import pytest

from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.tables.undo import TableUndo
from tests.support.forbidden_apis import Finding, committing_methods, examine, unanchored

PACKAGE = Path(inspect.getfile(TableStore)).parents[2]
STORAGE = PACKAGE / "storage"

# Per file of `storage`, the names of inline commits and of operations that it may mention.
ALLOWED: dict[str, set[str]] = {
    "tables/table.py": {"dataset"},
    "tables/create.py": {"commit", "Overwrite"},
    "tables/shapes.py": {"Update", "Delete", "Merge"},
    "tables/stage.py": {"commit", "Overwrite", "CreateIndex"},
    "tables/reshape.py": {"Merge", "Project"},
    "tables/undo.py": {"Delete", "Restore"},
    "files/transactions.py": {
        "Append",
        "Update",
        "Delete",
        "Merge",
        "Overwrite",
        "Restore",
        "CreateIndex",
        "Rewrite",
        "Project",
    },  # what others have committed, by class
    "files/dataset_file.py": {"delete"},  # objects, not rows
    "tables/manifest_table.py": {"update_schema_metadata"},
    "tables/older_manifest.py": {"update_field_metadata", "add_columns"},
    "tables/audit_table.py": {
        "commit",
        "Append",
    },  # unpinned: rows of two processes may both land
    "tables/refs.py": {"create_branch", "delete"},
    "tables/residual.py": {"compact_files", "optimize_indices", "execute", "commit", "update_config"},
}
# The strict inverse lists every fragment of its base as updated: it is its own anchor.
UNANCHORED: dict[str, int] = {"tables/undo.py": 1}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def forbidden(path: Path) -> list[Finding]:
    """Return what a module mentions beyond its allowance; print what a comment excuses."""
    in_storage = STORAGE in path.parents
    report = examine(path.read_text(encoding="utf-8"), in_storage=in_storage)
    for finding in report.excused:
        print(f"{path.relative_to(PACKAGE)}:{finding.line}: {finding.name} is excused")  # noqa: T201 - by design
    allowed = ALLOWED.get(str(path.relative_to(STORAGE)), set()) if in_storage else set()
    return [finding for finding in report.findings if finding.name not in allowed]


@pytest.mark.case("engine", 75)
def test_no_module_commits_behind_the_back_of_storage() -> None:
    found = {str(path.relative_to(PACKAGE)): forbidden(path) for path in modules()}

    assert "storage/tables/stage.py" in found
    assert {name: findings for name, findings in found.items() if findings} == {}


def test_the_allow_list_names_only_what_is_used() -> None:
    for name, allowed in ALLOWED.items():
        report = examine((STORAGE / name).read_text(encoding="utf-8"), in_storage=True)
        assert {finding.name for finding in report.findings} >= allowed, name


@pytest.mark.case("engine", 75)
def test_every_update_and_delete_has_an_anchor() -> None:
    sources = {
        str(path.relative_to(STORAGE)): path.read_text(encoding="utf-8") for path in STORAGE.rglob("*.py")
    }
    found = {name: unanchored(source) for name, source in sources.items()}

    assert {name: len(lines) for name, lines in found.items() if lines} == UNANCHORED


PLANTED = {
    "by name": ("from lance import write_dataset\nwrite_dataset(rows, uri)", "write_dataset"),
    "by alias": ("from lance import write_dataset as harmless\nharmless(rows, uri)", "write_dataset"),
    "by attribute": ("import lance\nlance.dataset(uri).delete('true')", "delete"),
    "by module alias": ("import lance as l\nl.dataset(uri)", "dataset"),
    "by reference": ("from lance import LanceDataset\nlater = LanceDataset.commit", "commit"),
    "by class alias": ("from lance import LanceDataset as D\nD.commit(uri, x)", "commit"),
    "by string": ("import lance\ngetattr(handle, 'restore')()", "restore"),
    "on a builder": ("import lance\nds.merge_insert('id').when_matched_update_all().execute(t)", "execute"),
    "on the optimizer": ("import lance\nds.optimize.compact_files()", "compact_files"),
    "a compaction": ("from lance.optimize import Compaction\nCompaction.commit(ds, r)", "commit"),
    "a ref": ("import lance\nds.branches.delete('fork')", "delete"),
    "an append": ("from lance import LanceOperation\nLanceOperation.Append([])", "Append"),
    "an append by alias": ("from lance import LanceOperation as Op\nOp.Append([])", "Append"),
}


@pytest.mark.case("engine", 75)
@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_call_is_caught(plant: str) -> None:
    source, name = PLANTED[plant]

    report = examine(source, in_storage=True)

    assert name in {finding.name for finding in report.findings}


@pytest.mark.case("engine", 75)
@pytest.mark.parametrize(
    "source",
    [
        "import lance",
        "from lance import LanceDataset",
        "import lance.fragment as f",
        "import importlib\nimportlib.import_module('lance')",
        "__import__('lance')",
        "handle._dataset.delete('true')",
    ],
)
def test_a_module_elsewhere_that_reaches_for_the_library_is_caught(source: str) -> None:
    assert examine(source, in_storage=False).findings


@pytest.mark.case("engine", 75)
def test_a_planted_update_without_anchor_is_caught() -> None:
    bare = "def stage(ds):\n    return LanceOperation.Update([], [], fragments)\n"
    merged = "def stage(ds):\n    return ds.merge_insert('id').execute_uncommitted(rows)\n"
    anchored = "def stage(ds):\n    return LanceOperation.Update([], with_anchor(ds, [], []), fragments)\n"

    assert (unanchored(bare), unanchored(merged), unanchored(anchored)) == ([2], [2], [])


@pytest.mark.case("engine", 75)
def test_a_comment_excuses_a_line_and_is_reported() -> None:
    source = "import lance\nds.restore()  # forbidden-api-allow: a test\nds.restore()\n"

    report = examine(source, in_storage=True)

    assert report.findings == (Finding(3, "restore"),)
    assert report.excused == (Finding(2, "restore"),)


def test_words_in_comments_and_docstrings_do_not_count() -> None:
    source = '"""Calls LanceDataset.commit(x)."""\nimport lance  # ds.restore()\ntext = "ds.delete()"\n'

    assert examine(source, in_storage=True).findings == ()


def test_ordinary_calls_of_the_same_name_do_not_count_elsewhere() -> None:
    source = "adapter.delete(name)\nnames.update(more)\nstager.commit_staged(staged)\n"

    assert examine(source, in_storage=False).findings == ()


def classes() -> dict[str, list[str]]:
    """Return every class of the engine with the names of its bases and of its public methods."""
    found: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
                found[f"{path.relative_to(PACKAGE)}:{node.name}"] = bases + methods
    return found


def implementations(classes_: dict[str, list[str]], surface: type) -> list[str]:
    """Return the classes that are the surface, extend it, or offer what it offers."""
    offered = {name for name in vars(surface) if not name.startswith("_")}
    return [
        name
        for name, members in classes_.items()
        if surface.__name__ in members or offered <= set(members) or name.endswith(f":{surface.__name__}")
    ]


@pytest.mark.case("engine", 76)
def test_the_storage_surface_commits_in_one_place_only() -> None:
    assert committing_methods(inspect.getsource(TableStore)) == []
    stager = committing_methods(inspect.getsource(TableStager))
    assert stager == ["commit_staged", "_commit", "_committed"]
    assert committing_methods(inspect.getsource(TableUndo)) == ["commit_fence"]


@pytest.mark.case("engine", 76)
@pytest.mark.parametrize("surface", [TableStore, TableStager, InlineCommitResidual, TableUndo])
def test_the_surface_has_one_implementation(surface: type) -> None:
    known = classes()

    assert len(implementations(known, surface)) == 1
    planted = known | {"operations/shadow.py:Shadow": [surface.__name__]}
    assert len(implementations(planted, surface)) == 2
    copied = [name for name in vars(surface) if not name.startswith("_")]
    assert len(implementations(known | {"exec/copy.py:Copy": copied}, surface)) == 2


@pytest.mark.case("engine", 76)
def test_the_residual_has_exactly_two_methods() -> None:
    public = {name for name in vars(InlineCommitResidual) if not name.startswith("_")}

    assert public == {"compact_files", "optimize_indices"}
    assert all("nline because" in (getattr(InlineCommitResidual, name).__doc__ or "") for name in public)
