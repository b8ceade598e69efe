"""`omnigraph schema show`: the schema that a graph has accepted."""

from pathlib import Path

import pytest

from omnigraph.core.errors import HandleClosed
from omnigraph.graph.opening import init
from tests.support.commands import SCHEMA, Outcome, omnigraph, write
from tests.support.in_process import document, invoke

ODD = f"// Läuft, with no line end behind it\r\n{SCHEMA.rstrip()}"


@pytest.mark.case("surfaces", 69)
@pytest.mark.parametrize("source", [SCHEMA, ODD], ids=["plain", "odd"])
def test_the_schema_is_printed_as_the_file_that_was_applied(source: str, tmp_path: Path) -> None:
    (tmp_path / "a.pg").write_bytes(source.encode())
    assert invoke("init", "g.omni", "--schema", "a.pg", cwd=tmp_path).code == 0

    shown = invoke("schema", "show", "g.omni", cwd=tmp_path)

    assert shown == Outcome(0, source, "")
    assert document("schema", "show", "--store", "g.omni", "--json", cwd=tmp_path) == {
        "schema_source": source
    }


@pytest.mark.case("surfaces", 445)
def test_get_is_another_name_of_show(tmp_path: Path) -> None:
    write(tmp_path, "a.pg", SCHEMA)
    assert invoke("init", "g.omni", "--schema", "a.pg", cwd=tmp_path).code == 0

    assert invoke("schema", "get", "g.omni", "--branch", "main", cwd=tmp_path) == Outcome(0, SCHEMA, "")
    assert document("schema", "get", "g.omni", cwd=tmp_path) == {"schema_source": SCHEMA}
    assert "get" not in invoke("schema", "--help", cwd=tmp_path).stdout.split()


def test_a_place_without_a_graph_is_a_typed_error(tmp_path: Path) -> None:
    write(tmp_path, "a.pg", SCHEMA)

    shown = omnigraph("schema", "show", ".", cwd=tmp_path)

    assert (shown.code, shown.stdout) == (1, "")
    assert "no graph at" in shown.stderr


def test_a_closed_handle_shows_no_schema(tmp_path: Path) -> None:
    graph = init(tmp_path / "g", SCHEMA)
    assert graph.schema() == SCHEMA
    graph.close()

    with pytest.raises(HandleClosed):
        graph.schema()
