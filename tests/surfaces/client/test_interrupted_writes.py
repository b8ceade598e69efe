"""An interrupt while a server is at work on a write: told as unknown, with the way to ask."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.remote.outcome import WriteFate
from omnigraph.core.errors import BadRequest
from omnigraph.core.failpoint import failpoint
from omnigraph.server.serving import Serving
from tests.support.atlas import ATLAS, GRAPH, craft, lines, place_atlas
from tests.support.commands import start
from tests.support.http_app import listening, settings_for
from tests.support.http_server import WAIT_S

ADD = 'query add() {{ insert Craft {{ code: "{code}", name: "new" }} }}'
# For each kind of write: the place at which the server is held while the interrupt comes.
WRITE, CREATE, DELETE = (
    "write.post_sidecar_pre_commit",
    "branch_create.post_ref_pre_control",
    "branch_delete.post_control_pre_refs",
)
MERGE, APPLY = "branch_merge.post_phase_b_pre_manifest_commit", "schema_apply.before_manifest_commit"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    place_atlas(tmp_path)
    with omnigraph.open(tmp_path / GRAPH) as graph:
        graph.create_branch("review")
        graph.mutate(ADD.format(code="OF-1"), branch="review")
    serving = Serving.begin(settings_for(tmp_path / GRAPH))
    try:
        with listening(serving) as url:
            yield url
    finally:
        serving.close()


@contextmanager
def held(place: str, begun: Callable[[], object]) -> Iterator[threading.Event]:
    """Hold the server at a place, once, and do something as soon as it is there; yield what lets it go."""
    release, is_first = threading.Event(), threading.Lock()

    def hold() -> None:
        if is_first.acquire(blocking=False):
            begun()
            release.wait(WAIT_S)

    with failpoint(place, call=hold):
        try:
            yield release
        finally:
            release.set()


def interrupt_main() -> None:
    """Interrupt the thread that waits for the answer, as Ctrl-C does."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def mutate(graph: RemoteGraph) -> object:
    """Add a row."""
    return graph.mutate(ADD.format(code="NEW-1"))


def load(graph: RemoteGraph) -> object:
    """Load a row."""
    return graph.load(lines(craft("NEW-2")).encode(), mode="append")


def create(graph: RemoteGraph) -> object:
    """Create a branch."""
    return graph.create_branch("made")


def delete(graph: RemoteGraph) -> object:
    """Delete a branch."""
    graph.delete_branch("review")
    return None


def merge(graph: RemoteGraph) -> object:
    """Merge a branch."""
    return graph.merge("review")


def apply(graph: RemoteGraph) -> object:
    """Add a type."""
    return graph.apply_schema(graph.schema() + "\nnode Extra { name: String @key }\n")


@pytest.mark.case("surfaces", 800)
@pytest.mark.parametrize(
    ("write", "place"),
    [(mutate, WRITE), (load, WRITE), (create, CREATE), (delete, DELETE), (merge, MERGE), (apply, APPLY)],
)
def test_an_interrupt_is_noted_and_can_be_asked_about(
    url: str, write: Callable[[RemoteGraph], object], place: str
) -> None:
    with omnigraph.connect(url) as graph:
        assert isinstance(graph, RemoteGraph)
        with held(place, interrupt_main) as release:
            with pytest.raises(KeyboardInterrupt) as interrupt:
                write(graph)
            release.set()

        lost = interrupt.value.__cause__
        assert isinstance(lost, omnigraph.CommitOutcomeUnknown)
        (note,) = interrupt.value.__notes__
        assert "compare heads" in note
        assert f"/writes/{lost.write_id}" in note
        assert graph.outcome_of(interrupt.value).fate is WriteFate.LANDED


def test_an_interrupt_of_a_read_has_nothing_to_ask_about(url: str) -> None:
    with omnigraph.connect(url) as graph:
        assert isinstance(graph, RemoteGraph)
        with held("query.post_pin_pre_read", interrupt_main), pytest.raises(KeyboardInterrupt) as interrupt:
            graph.query("query q() { match { $c: Craft } return { $c.code } }")

        with pytest.raises(BadRequest, match="nothing to ask"):
            graph.outcome_of(interrupt.value)


@pytest.mark.case("surfaces", 801)
@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("mutate", "-e", ADD.format(code="NEW-1")), WRITE),
        (("load", "--data", "new.jsonl", "--mode", "append"), WRITE),
        (("branch", "create", "made"), CREATE),
        (("branch", "delete", "review", "--yes"), DELETE),
        (("branch", "merge", "review"), MERGE),
        (("schema", "apply", "--schema", "new.pg"), APPLY),
    ],
)
def test_ctrl_c_says_that_a_write_on_a_server_may_have_been_carried_out(
    url: str, tmp_path: Path, arguments: tuple[str, ...], place: str
) -> None:
    (tmp_path / "new.jsonl").write_text(lines(craft("NEW-2")))
    (tmp_path / "new.pg").write_text(ATLAS + "\nnode Extra { name: String @key }\n")
    begun = threading.Event()
    with held(place, begun.set) as release:
        process = start(*arguments, "--server", url, cwd=tmp_path)
        assert begun.wait(WAIT_S)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=WAIT_S)
        release.set()

    assert process.returncode == 130
    told = stderr.decode().splitlines()[-1]
    assert told.startswith("interrupted: no answer to the write on branch ")
    assert "nothing was" not in told
    name = told.rpartition("/writes/")[2].rstrip(")")
    lost = omnigraph.CommitOutcomeUnknown(branch="main", head_before=None, write_id=name)
    with omnigraph.connect(url) as graph:
        assert isinstance(graph, RemoteGraph)
        assert graph.outcome_of(lost).fate is WriteFate.LANDED
