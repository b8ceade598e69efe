"""Sidecars of changes of the schema that were damaged: recovery publishes no schema that cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.core.errors import OmnigraphError, SidecarCorrupt
from omnigraph.core.failpoint import failpoint
from tests.support.books import fingerprint
from tests.support.protocol import sidecars

SCHEMA = "node A { k: String @key }"
WIDER = "node A { k: String @key\n x: I32? }\nnode N { q: String @key }"
DAMAGES = {
    "no document": {"ir_text": "junk"},
    "an empty object": {"ir_text": "{}"},
    "a list": {"ir_text": "[]"},
    "no source": {"source": "junk"},
    "another schema": {"source": SCHEMA},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph with the sidecar of a change whose tables are written, and which nobody has published."""
    place = tmp_path / "graph"
    with (
        og.init(place, SCHEMA) as graph,
        failpoint("schema_apply.before_manifest_commit", "raise"),
        pytest.raises(OmnigraphError),
    ):
        graph.apply_schema(WIDER, index=False)
    return place


def change(path: Path, members: dict[str, str]) -> None:
    document: dict[str, Any] = json.loads(path.read_text())
    document["schema_change"].update(members)
    path.write_text(json.dumps(document))


@pytest.mark.case("engine", 621)
@pytest.mark.parametrize("damage", [*DAMAGES, "a document that was cut", "a source that was cut"])
def test_a_damaged_schema_in_a_sidecar_is_named_and_not_published(root: Path, damage: str) -> None:
    (name,) = sidecars(root)
    path = root / "__recovery" / Path(name).name
    whole = path.read_text()
    told = json.loads(whole)["schema_change"]
    cut = {
        "a document that was cut": {"ir_text": told["ir_text"][: len(told["ir_text"]) // 2]},
        "a source that was cut": {"source": told["source"][: len(told["source"]) // 2]},
    }
    change(path, DAMAGES.get(damage) or cut[damage])
    before = fingerprint(root / "__manifest")

    with pytest.raises(SidecarCorrupt, match=path.name):
        og.open(root)

    assert fingerprint(root / "__manifest") == before
    path.write_text(whole)
    with og.open(root) as graph:
        assert graph.schema() == WIDER


@pytest.mark.case("engine", 621)
def test_the_sidecar_of_a_change_that_was_not_damaged_is_finished(root: Path) -> None:
    og.open(root).close()

    assert not sidecars(root)
    with og.open(root, mode="ro") as graph:
        assert graph.schema() == WIDER
