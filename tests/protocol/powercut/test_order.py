"""The order of syncs in one commit, seen on the disk and, where strace is installed, in the system calls."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.operations.open import make_parts
from tests.models.histories.contents import SCHEMA
from tests.models.histories.operations import PutPerson, perform
from tests.protocol.powercut.disk import Disk
from tests.support.seam import internals

FIRST = PutPerson("ada", 36, "t1")
WRITE = PutPerson("ben", 7, "t2", "ada", "k1")  # two tables
TABLES_OF_MANY = 70  # one data file each: more than are synced one by one

PROGRAM = """
import os, sys
import omnigraph
from tests.models.histories.operations import perform
from tests.protocol.powercut.test_order import WRITE
with omnigraph.open(sys.argv[1]) as graph:
    open_mark = lambda name: os.close(os.open(sys.argv[2] + name, os.O_CREAT | os.O_WRONLY))
    open_mark("begin")
    perform(graph, WRITE)
    open_mark("end")
"""


def files_of(root: Path) -> set[Path]:
    """Return the files of a graph that a commit depends on; no hints, locks and copies."""
    return {
        path
        for path in root.rglob("*")
        if path.is_file() and path.suffix in {".lance", ".manifest", ".arrow", ".bin", ".json"}
    } - set(root.rglob("latest_version_hint.json"))


def is_version(path: Path, *, of_manifest: bool) -> bool:
    return path.suffix == ".manifest" and ("__manifest" in path.parts) == of_manifest


@pytest.mark.case("engine", 293)
def test_each_step_is_on_the_disk_before_the_next_one_begins(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, SCHEMA).close()
    seen: list[str] = []
    with omnigraph.open(root) as graph:
        perform(graph, FIRST)
        disk = Disk(root, tmp_path / "shadow")
        disk.start()
        before = files_of(root)

        def look() -> None:
            """Nothing becomes safe between two looks, so what is safe here was so when the files appeared."""
            new = files_of(root) - before
            tables = {path for path in new if path.is_relative_to(root / "nodes")}
            tables |= {path for path in new if path.is_relative_to(root / "edges")}
            is_published = any(is_version(path, of_manifest=True) for path in new)
            if any(is_version(path, of_manifest=False) for path in new) and not is_published:
                staged = {path for path in tables if path.suffix != ".manifest"}
                sidecars = {path for path in new if path.parent.name == "__recovery"}
                assert len(staged) >= 2
                assert len(sidecars) == 1
                assert all(disk.is_safe(path) for path in staged | sidecars)
                seen.append("table version")
            if is_published:
                assert all(disk.is_safe(path) for path in tables)
                seen.append("manifest version")

        with disk.watching(look):
            perform(graph, WRITE)

    new = files_of(root) - before
    assert {"table version", "manifest version"} <= set(seen)
    assert all(disk.is_safe(path) for path in new)
    assert sum(is_version(path, of_manifest=False) for path in new) == 2
    assert sum(is_version(path, of_manifest=True) for path in new) == 1


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_system_calls_come_in_order(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, SCHEMA).close()
    with omnigraph.open(root) as graph:
        perform(graph, FIRST)
    before = files_of(root)
    log = tmp_path / "trace"
    calls = "fsync,fdatasync,syncfs,link,linkat,rename,renameat,renameat2,openat"
    arguments = [sys.executable, "-c", PROGRAM, str(root), f"{tmp_path}/mark-"]
    traced = ["strace", "-f", "-y", "-qq", "-s", "512", "-e", f"trace={calls}", "-o", str(log), *arguments]
    subprocess.run(traced, check=True, env={"PYTHONPATH": ":".join(filter(None, sys.path))})

    events = list(read_trace(log.read_text()))

    new = files_of(root) - before
    staged = [path for path in new if path.suffix in {".lance", ".arrow", ".bin"}]
    data = [path for path in staged if "__manifest" not in path.parts]
    tables = [path for path in new if is_version(path, of_manifest=False)]
    manifest = [path for path in new if "__manifest" in path.parts]
    (version,) = [path for path in new if is_version(path, of_manifest=True)]
    first_table = min(place(events, "appear", path) for path in tables)
    published = place(events, "appear", version)
    end = len(events)
    sidecar = next(
        name for kind, name in events if kind == "appear" and "__recovery" in name and ".json" in name
    )
    assert place(events, "sync", Path(sidecar)) < first_table
    assert all(place(events, "sync", path) < first_table for path in data)
    assert all(place(events, "sync", path.parent) < first_table for path in data)
    assert all(first_table < place(events, "sync", path) < published for path in tables)
    assert all(first_table < last_sync(events, path.parent, published) < published for path in tables)
    assert all(published < place(events, "sync", path) < end for path in manifest)
    assert all(published < last_sync(events, path.parent, end) < end for path in manifest)


def read_trace(text: str) -> Iterator[tuple[str, str]]:
    """Yield what appeared and what was synced between the two marks, in order."""
    pending: dict[str, str] = {}
    is_inside = False
    renamed: dict[str, str] = {}
    for line in text.splitlines():
        process, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            pending[process] = call.removesuffix("<unfinished ...>")
            continue
        if call.startswith("<... "):
            call = pending.pop(process, "") + call.partition("resumed>")[2]
        if " = -1 " in call:
            continue
        is_inside = (is_inside or "mark-begin" in call) and "mark-end" not in call
        if not is_inside:
            continue
        if found := re.match(r"(?:fsync|fdatasync)\(\d+<([^>]*)>", call):
            yield "sync", renamed.get(found[1], found[1])
        elif found := re.match(r"(?:link|rename)\w*\((.*)\)\s*=", call):
            old, new = re.findall(r'"([^"]*)"', found[1])[:2]
            yield "appear", new
            renamed[old] = new
            yield "renamed", f"{old} {new}"
        elif (found := re.match(r'openat\([^"]*"([^"]*)", ([A-Z_|]*)', call)) and "O_CREAT" in found[2]:
            yield "appear", found[1]


def place(events: list[tuple[str, str]], kind: str, path: Path) -> int:
    """Return where something first happened to a file, under its name or the one it was written under."""
    names = {str(path)} | {
        name.split()[0] for k, name in events if k == "renamed" and name.endswith(f" {path}")
    }
    return next(number for number, event in enumerate(events) if event[0] == kind and event[1] in names)


def last_sync(events: list[tuple[str, str]], folder: Path, before: int) -> int:
    return max(number for number, event in enumerate(events[:before]) if event == ("sync", str(folder)))


@pytest.mark.case("engine", 293)
def test_many_files_are_synced_by_one_call_for_the_file_system(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    schema = "\n".join(f"node Type{number} {{ k: String @key }}" for number in range(TABLES_OF_MANY))
    records = "\n".join(f'{{"type":"Type{number}","data":{{"k":"a"}}}}' for number in range(TABLES_OF_MANY))
    omnigraph.init(root, schema).close()
    with omnigraph.open(root) as graph:
        syncer = internals(graph).parts.syncer
        before = syncer.syncfs

        graph.load(records.encode(), "append", index=False)

        assert syncer.syncfs - before == 2  # staged files; version and transaction files


@pytest.mark.case("engine", 293)
def test_process_durability_syncs_nothing(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, SCHEMA, durability="process").close()
    disk = Disk(root, tmp_path / "shadow")
    disk.start()

    with disk.watching(lambda: None), omnigraph.open(root, durability="process") as graph:
        perform(graph, FIRST)
        perform(graph, WRITE)

    assert disk.syncs == 0


@pytest.mark.case("engine", 293)
def test_an_object_store_ignores_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anything")

    assert not make_parts("s3://bucket/graph").syncer.is_active
