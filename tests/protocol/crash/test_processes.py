"""Several writers on one local disk: processes of which some are killed, and threads."""

import sys
import threading
from pathlib import Path
from time import monotonic

import pytest

import omnigraph
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.core.errors import ConflictError, OmnigraphError
from tests.models.histories.contents import OWN_TABLES, SCHEMA, Contents, Refused
from tests.models.histories.operations import Operation, PutOwn, apply, perform
from tests.models.histories.programs import Program
from tests.protocol.crash.histories import Reports, check_history
from tests.protocol.crash.workers import OWN_SHARE, Workers
from tests.protocol.crash.writer import Acknowledged, Failed, Message, Request
from tests.support.seeds import fixed_seed, fresh_seed


def say(title: str, seed: int, reports: Reports, counts: dict[str, int]) -> None:
    fates = {fate: reports.count(fate) for fate in ("acknowledged", "refused", "unfinished", "killed")}
    sys.stdout.write(
        f"\n{title}: seed {seed}; {len(reports.writes)} writes {fates}, {reports.kills} kills\n"
        f"{title}: errors {dict(reports.errors)}; graph {counts}\n"
        f"{title}: one chain, every success visible, every refusal invisible, no live sidecar touched\n"
    )
    if "RecoveryRequired" in reports.texts:
        sys.stdout.write(f"{title}: {reports.texts['RecoveryRequired']}\n")


def run_with_kills(root: Path, *, seed: int, kills: int, writes_between: int) -> None:
    """Kill one of four processes again and again, while all of them are at work."""
    omnigraph.init(root, SCHEMA).close()
    workers = Workers(root, seed, processes=4)
    for _ in range(kills):
        workers.work_until_asked(len(workers.reports.writes) + writes_between)
        victim = workers.random.randrange(4)
        workers.kill(victim)
        workers.start(victim)
    workers.work_until_asked(len(workers.reports.writes) + writes_between)
    workers.stop()

    with omnigraph.open(root) as graph:
        counts = check_history(graph, workers.reports)

    say("4 processes", seed, workers.reports, counts)
    assert workers.reports.count("acknowledged") > 0


def test_four_processes_of_which_two_are_killed_keep_one_history(tmp_path: Path) -> None:
    run_with_kills(tmp_path / "graph", seed=fixed_seed("CRASH_SEED"), kills=2, writes_between=40)


@pytest.mark.crash
def test_four_processes_of_which_one_is_killed_thirty_times_keep_one_history(tmp_path: Path) -> None:
    run_with_kills(tmp_path / "graph", seed=fresh_seed("CRASH_SEED"), kills=30, writes_between=40)


def run_threads(root: Path, *, seed: int, writes: int) -> None:
    """Let eight threads write, so many times all together."""
    reports = Reports()
    lock = threading.Lock()
    failures: list[BaseException] = []
    omnigraph.init(root, SCHEMA).close()
    handles = [omnigraph.open(root) for _ in range(2)]  # four threads on each

    def work(place: int) -> None:
        program = Program(seed + place)
        program._names = iter(range(place, 1 << 62, 8))  # no two threads use one name
        drawn = Contents()
        while not failures:
            with lock:
                if len(reports.writes) >= writes:
                    return
                own = PutOwn(place % OWN_TABLES, f"k{len(reports.writes)}", place)
                operation = own if program.random.random() < OWN_SHARE else program.next(drawn)
                request = Request(f"thread-{place}-{len(reports.writes)}", operation)
                reports.asked(request)
            try:
                commit_id = perform(handles[place % 2], operation, actor=request.name)
                said: Message = Acknowledged(request.name, commit_id)
            except OmnigraphError as error:
                is_conflict = isinstance(error, ConflictError)
                said = Failed(request.name, type(error).__name__, str(error), is_conflict)
            with lock:
                reports.said(said)
                if isinstance(said, Acknowledged) and not isinstance(operation, PutOwn):
                    drawn = _or_same(drawn, operation)

    def guarded(place: int) -> None:
        try:
            work(place)
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=guarded, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []

    with omnigraph.open(root) as graph:
        counts = check_history(graph, reports)

    say("8 threads", seed, reports, counts)
    assert reports.count("acknowledged") > 0


def _or_same(contents: Contents, operation: Operation) -> Contents:
    try:
        return apply(contents, operation)
    except Refused:
        return contents


def test_eight_threads_keep_one_history(tmp_path: Path) -> None:
    run_threads(tmp_path / "graph", seed=fixed_seed("CRASH_SEED"), writes=150)


@pytest.mark.crash
def test_eight_threads_keep_one_history_for_thousands_of_writes(tmp_path: Path) -> None:
    run_threads(tmp_path / "graph", seed=fresh_seed("CRASH_SEED"), writes=3_000)


@pytest.mark.slow
@pytest.mark.case("engine", 287)
def test_two_processes_of_which_one_is_killed_leave_what_they_reported(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    seed = fixed_seed("CRASH_SEED")
    omnigraph.init(root, SCHEMA).close()
    workers = Workers(root, seed, processes=2, own_share=0.0)
    workers.work_until(monotonic() + 600, writes_max=20 + workers.random.randrange(100))
    workers.ask(0)
    workers.ask(1)
    workers.work_until(monotonic() + workers.random.random() * 0.1)
    workers.kill(1)
    workers.processes = 1
    workers.work_until(monotonic() + 600, writes_max=200)
    workers.stop()
    with omnigraph.open(root, mode="ro") as graph:
        healed = {record.operation_id for record in graph.recoveries()}

    with omnigraph.open(root) as graph:
        counts = check_history(graph, workers.reports)
        restored = [record for record in graph.recoveries() if record.operation_id not in healed]

    say("2 processes", seed, workers.reports, counts)
    for record in restored:
        write = workers.reports.writes.get(record.recovery_for_actor or "")
        sys.stdout.write(f"2 processes: restored at the reopen: {record.writer_kind} {write}\n")
    # The survivor needs the reopen only for what needs a restore: nothing else stays in its way.
    assert all(record.recovery_kind is RecoveryKind.ROLLED_BACK for record in restored)
    fates = [write.fate for write in workers.reports.writes.values()]
    is_stuck = "unfinished" in fates[-20:] and "acknowledged" not in fates[-20:]
    assert bool(restored) >= is_stuck


@pytest.mark.slow
@pytest.mark.case("engine", 322)
def test_four_processes_publish_a_hundred_times_each(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, SCHEMA).close()
    workers = Workers(root, fixed_seed("CRASH_SEED"), processes=4, own_share=1.0)
    workers.work_until(monotonic() + 600, writes_max=100)

    assert workers.reports.count("acknowledged") == 400
    assert not workers.reports.errors

    workers.stop()
    with omnigraph.open(root) as graph:
        check_history(graph, workers.reports)
