"""The bytes of an answer hang on the content of a graph, and not on how its tables are laid out."""

from pathlib import Path

import omnigraph
from tests.models.query.compare import ask
from tests.models.query.generate import random_case
from tests.models.query.render import ndjson, schema_text

SEED = 1
QUERIES = 60
COMMITS = 68  # upkeep is due after 64 commits on a table
MAINTENANCE_ACTOR = "omnigraph:maintenance"

COME = """\
query come($to: String) {
    insert Person { handle: "guest", age: 7 }
    insert Knows { from: "guest", to: $to }
}
"""
GO = 'query go() { delete Person where handle = "guest" }'


def test_an_answer_has_the_same_bytes_before_and_after_compaction(tmp_path: Path) -> None:
    case = random_case(SEED, QUERIES)
    omnigraph.init(tmp_path / "graph", schema_text(case.schema), durability="process").close()
    with omnigraph.open(tmp_path / "graph", durability="process") as graph:
        graph.load(ndjson(case.schema, case.data), "append")
        before = [ask(graph, asked.query).text for asked in case.asked]
        built = _maintenance(graph)
        host = next(node.id for node in case.data.nodes if node.type_name == "Person")

        for _ in range(COMMITS // 2):
            graph.mutate(COME, params={"to": host})
            graph.mutate(GO)

        assert _maintenance(graph) > built, "there was no upkeep: nothing is shown"
        assert [ask(graph, asked.query).text for asked in case.asked] == before
    with omnigraph.open(tmp_path / "graph", durability="process") as reopened:
        assert [ask(reopened, asked.query).text for asked in case.asked] == before


def _maintenance(graph: omnigraph.Graph) -> int:
    return len(graph.commits(where=lambda commit: commit.actor_id == MAINTENANCE_ACTOR))
