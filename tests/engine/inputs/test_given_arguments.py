"""Places, flags, names and callbacks that a Python user gives by mistake: refused, and nothing happens.

Values are gone through inside of tests: one of them cannot be written, not even in the name of a test.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.core.errors import BadRequest, NotFoundError
from omnigraph.operations.verify.verify import verify_place
from tests.support.books import fingerprint

SCHEMA = "node A { k: String @key }\nnode B { k: String @key }"
LESS = "node A { k: String @key }"
HUGE = 10**5000  # Python does not write it
NO_FLAGS: tuple[Any, ...] = (None, "no", "", 0, 1, b"x", [], HUGE)
NO_PLACES: tuple[Any, ...] = (None, 5, True, b"x", [], HUGE)
NO_LISTS: tuple[Any, ...] = (5, True, "main", b"main", {"main": 1}, [5], [None], object())
NO_TEXTS: tuple[Any, ...] = (0, b"x", [], Path("x"))
NO_IDS: tuple[Any, ...] = (None, 5, b"x", [], "x" * 100_000, "..", ".", "", "a/b", HUGE)
NO_AGES: tuple[Any, ...] = (HUGE, 1e300, float("inf"), timedelta(-1))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("arguments") / "graph"
    with og.init(place, SCHEMA, durability="process") as graph:
        graph.mutate('query q() { insert A { k: "a" } }')
        graph.create_branch("b")
    return place


FLAGS: dict[str, Callable[[og.Graph, Any], object]] = {
    "allow_data_loss": lambda graph, flag: graph.apply_schema(LESS, allow_data_loss=flag),
    "exclusive": lambda graph, flag: graph.apply_schema(LESS, exclusive=flag),
    "index": lambda graph, flag: graph.apply_schema(LESS, index=flag),
    "confirm": lambda graph, flag: graph.repair(confirm=flag),
    "force": lambda graph, flag: graph.repair(force=flag),
    "deep": lambda graph, flag: graph.verify(deep=flag),
    "dry_run": lambda graph, flag: graph.cleanup(1, dry_run=flag),
    "delete_branch": lambda graph, flag: graph.merge("b", delete_branch=flag),
    "strict_columns": lambda graph, flag: graph.load(b"", "merge", strict_columns=flag),
    "embed": lambda graph, flag: graph.load(b"", "merge", embed=flag),
}


@pytest.mark.case("surfaces", 320)
@pytest.mark.parametrize("flag", FLAGS)
def test_only_true_and_false_are_flags(root: Path, flag: str) -> None:
    before = fingerprint(root)
    with og.open(root, mode="ro") as graph:
        for given in NO_FLAGS:
            with pytest.raises(BadRequest, match=rf"^{flag} must be True or False, not "):
                FLAGS[flag](graph, given)

    assert fingerprint(root) == before


@pytest.mark.case("surfaces", 320)
def test_a_repair_is_carried_out_by_a_false_dry_run_alone(root: Path) -> None:
    before = fingerprint(root)

    for given in NO_FLAGS:
        with pytest.raises(BadRequest, match="dry_run must be True or False"):
            og.repair(root, 1, dry_run=given)

    assert fingerprint(root) == before


@pytest.mark.case("surfaces", 321)
def test_what_is_no_place_is_no_place(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verbs: tuple[Callable[[Any], object], ...] = (
        og.open,
        lambda given: og.init(given, SCHEMA),
        lambda given: og.clone(root, given),
        lambda given: og.clone(given, tmp_path / "copy"),
        lambda given: og.check_copy(root, given),
        og.quarantined,
        lambda given: og.restore_quarantined(given, "x"),
        lambda given: og.repair(given, 1),
    )

    for verb in verbs:
        for given in NO_PLACES:
            with pytest.raises(BadRequest, match="must be a path or an address, not "):
                verb(given)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.case("surfaces", 321)
def test_the_branches_of_a_copy_are_a_list_of_texts(root: Path, tmp_path: Path) -> None:
    for given in NO_LISTS:
        with pytest.raises(BadRequest, match="branches must be a list of texts"):
            og.clone(root, tmp_path / "copy", branches=given)
        with pytest.raises(BadRequest, match="branches must be a list of texts"):
            og.check_copy(root, root, branches=given)


@pytest.mark.case("surfaces", 321)
def test_the_commit_of_a_copy_is_a_text(root: Path, tmp_path: Path) -> None:
    for given in NO_TEXTS:
        with pytest.raises(BadRequest, match="at must be a text"):
            og.clone(root, tmp_path / "copy", at=given)


@pytest.mark.case("surfaces", 321)
def test_what_is_no_id_names_nothing_in_quarantine(root: Path) -> None:
    for given in NO_IDS:
        with pytest.raises(NotFoundError, match="nothing in quarantine under the id"):
            og.restore_quarantined(root, given)


@pytest.mark.case("surfaces", 321)
def test_progress_is_told_to_functions(root: Path, tmp_path: Path) -> None:
    given: Any = 5
    with og.open(root, mode="ro") as graph:
        for verb in (
            lambda: graph.verify(progress=given),
            lambda: graph.cleanup(1, progress=given),
            lambda: graph.optimize(progress=given),
            lambda: graph.load(b"", "merge", progress=given),
            lambda: og.clone(root, tmp_path / "copy", progress=given),
            lambda: og.check_copy(root, root, progress=given),
        ):
            with pytest.raises(BadRequest, match="progress must be a function, not an int"):
                verb()


@pytest.mark.case("surfaces", 321)
def test_an_age_beyond_all_ages_is_refused(root: Path) -> None:
    with og.open(root, mode="ro") as graph:
        for given in NO_AGES:
            with pytest.raises(BadRequest, match="older_than must be"):
                graph.cleanup(10, older_than=given)


@pytest.mark.case("surfaces", 321)
def test_a_number_that_python_does_not_write_is_refused_like_another(root: Path, tmp_path: Path) -> None:
    given: Any = HUGE
    with og.open(root, mode="ro") as graph:
        for verb in (
            lambda: graph.cleanup(keep=given),
            lambda: graph.schema(branch=given),
            lambda: graph.commits(limit=given),
            lambda: og.clone(root, tmp_path / "copy", depth=given),
            lambda: og.repair(root, given),
            lambda: og.open(root, mode=given),
            lambda: og.open(root, durability=given),
            lambda: graph.load(b"", given),
        ):
            with pytest.raises(BadRequest, match="an int"):
                verb()


@pytest.mark.case("surfaces", 322)
def test_a_place_with_thousands_of_folders_is_refused(root: Path, tmp_path: Path) -> None:
    deep = str(tmp_path) + "/a" * 1_900

    for verb in (lambda: og.clone(root, deep), lambda: og.init(deep, SCHEMA), lambda: og.open(deep)):
        with pytest.raises(BadRequest, match="at most 256 folders"):
            verb()


@pytest.mark.case("surfaces", 322)
@pytest.mark.parametrize("place", ["/dev/null", "file", "pipe", "file/below"])
def test_what_is_no_folder_is_named(root: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    named = str(tmp_path / place)

    for verb in (
        lambda: verify_place(named),
        lambda: og.check_copy(root, named),
        lambda: og.open(named),
        lambda: og.clone(root, named),
    ):
        with pytest.raises(BadRequest, match="a graph is a folder") as caught:
            verb()
        assert named in str(caught.value)
