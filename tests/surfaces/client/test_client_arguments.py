"""Arguments that no server can be asked with: refused, with what is wrong, before anything is sent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.core.errors import BadRequest, OmnigraphError
from tests.support.in_process import invoke
from tests.support.scripted import serving

HALF = "\ud800"
ADD = "query q() { delete Craft where code = 'x' }"
# Any: what no checker of types would let pass.
OF_ANOTHER_KIND: list[tuple[str, Callable[[Any], object]]] = [
    ("commit_id", lambda graph: graph.commit(5)),
    ("commit_id", lambda graph: graph.commit_changes(None)),
    ("commit_id", lambda graph: graph.commit_changes_page(b"a")),
    ("a must be", lambda graph: graph.diff(5.5)),
    ("b must be", lambda graph: graph.diff("a", None)),
    ("kinds", lambda graph: graph.diff("a", kinds="node")),
    ("types", lambda graph: graph.commit_changes("a", types=[5])),
    ("ops", lambda graph: graph.poll_changes(start="now", ops=5)),
    ("after", lambda graph: graph.events(after=5)),
    ("branch", lambda graph: graph.snapshot(5)),
    ("branch", lambda graph: graph.query(ADD, branch=5.5)),
    ("name", lambda graph: graph.delete_branch(5)),
    ("name of a query", lambda graph: graph.invoke(5)),
    ("message", lambda graph: graph.mutate(ADD, message=object())),
    ("message", lambda graph: graph.mutate(ADD, message=float("nan"))),
    ("no id of a commit", lambda graph: graph.mutate(ADD, if_commit="a\nb")),
    ("no id of a commit", lambda graph: next(graph.events(after="é"))),
    ("message: the text", lambda graph: graph.mutate(ADD, message=HALF)),
    ("branch: the text", lambda graph: graph.query(ADD, branch=HALF)),
    ("branch: the text", lambda graph: graph.commits(branch=HALF)),
    ("to: the text", lambda graph: graph.diff(HALF)),
    ("snapshot: the text", lambda graph: graph.describe("M", snapshot=HALF)),
    ("name: the text", lambda graph: graph.create_branch(HALF)),
]
ABSENT: list[tuple[type[OmnigraphError], Callable[[Any, str], object]]] = [
    (omnigraph.CommitNotFound, lambda graph, name: graph.commit(name)),
    (omnigraph.CommitNotFound, lambda graph, name: graph.commit_changes(name)),
    (omnigraph.BranchNotFound, lambda graph, name: graph.delete_branch(name)),
    (omnigraph.NotFoundError, lambda graph, name: graph.invoke(name)),
]


@pytest.mark.case("surfaces", 788)
@pytest.mark.parametrize(("named", "call"), OF_ANOTHER_KIND, ids=range(len(OF_ANOTHER_KIND)))
def test_what_is_no_such_argument_is_named(named: str, call: Callable[[Any], object]) -> None:
    with serving() as script, script.remote() as graph, pytest.raises(BadRequest, match=named):
        call(graph)

    assert script.asked == []


@pytest.mark.case("surfaces", 788)
@pytest.mark.parametrize("name", ["", ".", "..", HALF], ids=ascii)
@pytest.mark.parametrize(("raised", "call"), ABSENT, ids=range(len(ABSENT)))
def test_a_name_that_would_change_the_address_is_of_nothing(
    raised: type[OmnigraphError], call: Callable[[Any, str], object], name: str
) -> None:
    with serving() as script, script.remote() as graph, pytest.raises(raised):
        call(graph, name)

    assert script.asked == []


@pytest.mark.case("surfaces", 788)
def test_a_command_says_which_word_is_no_text(tmp_path: Path) -> None:
    half = b"\xff".decode(errors="surrogateescape")
    with serving() as script:
        got = invoke("blob", "get", "node", "M", half, "body", "--store", script.url, cwd=tmp_path)
        shown = invoke("commit", "show", half, "--store", script.url, cwd=tmp_path)

    assert (got.code, shown.code, script.asked) == (1, 1, [])
    assert "id: the text is not valid Unicode" in got.stderr
    assert "commit '\\udcff' not found" in shown.stderr
