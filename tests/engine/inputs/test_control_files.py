"""Something else in the place of a graph's own files: said at once, by name, and never read without end."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.limits import CONTROL_BYTES_MAX

SCHEMA = "node P { name: String @key }\n"
FILES = (
    "_schema.pg",
    "_schema.ir.json",
    "__schema_state.json",
    "__manifest/_acknowledged",
    "__branches/side.json",
    "__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json",
)
JSON_FILES = tuple(name for name in FILES if name.endswith(".json"))
DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("control") / "graph"
    with omnigraph.init(root, SCHEMA, durability="process") as graph:
        graph.create_branch("side")
    return root


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(CONTROL_BYTES_MAX + 1)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "it is a pipe, not a file"),
    "device": (device, "it is a device, not a file"),
    "folder": (lambda path: path.mkdir(), "Is a directory"),
    "large": (large, "it has more than 67108864 bytes"),
}


def replaced(whole: Path, tmp_path: Path, name: str) -> tuple[Path, Path]:
    """Return a copy of a graph, and the place of one of its files, which is not there any more."""
    root = tmp_path / "graph"
    shutil.copytree(whole, root)
    file = root / name
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    return root, file


def write(root: Path, name: str) -> None:
    with omnigraph.open(root, durability="process") as graph:
        branch = "side" if "side" in name else None
        graph.load(b'{"type": "P", "data": {"name": "a"}}', "merge", branch=branch, index=False)


@pytest.mark.case("surfaces", 246)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_plain_file_is_refused_by_name(whole: Path, tmp_path: Path, name: str, kind: str) -> None:
    root, file = replaced(whole, tmp_path, name)
    make, reason = KINDS[kind]
    make(file)
    if kind == "folder" and name.startswith("__recovery"):
        return  # a folder there is none of the files that are listed

    with pytest.raises(OmnigraphError) as caught:
        write(root, name)

    assert name in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.case("surfaces", 246)
def test_a_branch_whose_control_object_is_a_pipe_is_not_left_out_of_the_list(
    whole: Path, tmp_path: Path
) -> None:
    root, file = replaced(whole, tmp_path, "__branches/side.json")
    os.mkfifo(file)

    with omnigraph.open(root, mode="ro") as graph:
        assert graph.branches() == ["main", "side"]


@pytest.mark.case("surfaces", 246)
@pytest.mark.parametrize(
    "text", [DEEP, b"9" * 6_000, b"[]", b"\xff\xfe"], ids=["deep", "digits", "list", "bytes"]
)
@pytest.mark.parametrize("name", JSON_FILES)
def test_damaged_contents_are_a_typed_error(whole: Path, tmp_path: Path, name: str, text: bytes) -> None:
    root, file = replaced(whole, tmp_path, name)
    file.write_bytes(text)

    with pytest.raises(OmnigraphError):
        write(root, name)


@pytest.mark.parametrize("version", [2**62, 2**64, 10**30])
def test_a_branch_that_starts_at_a_version_beyond_all(whole: Path, tmp_path: Path, version: int) -> None:
    """The numbers up to it are never counted, one by one or at all."""
    root = tmp_path / "graph"
    shutil.copytree(whole, root)
    control = root / "__branches" / "side.json"
    wrong = json.loads(control.read_text()) | {"parent_manifest_version": version}
    control.write_text(json.dumps(wrong))

    with pytest.raises(OmnigraphError, match=f"{version}|damaged"), omnigraph.open(root) as graph:
        graph.mutate('query add() { insert P { name: "a" } }', branch="side")
