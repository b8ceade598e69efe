"""What a publish says when it cannot know, and what it expects besides a number."""

from pathlib import Path

import pytest

from omnigraph.commit.changes import Expectation
from omnigraph.commit.publish import PublishUnknown
from omnigraph.core.errors import ExpectedVersionMismatch
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from tests.support.engine import Publisher, chain, head, intent, manifest_path, new_graph


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path / "graph")


def test_an_answer_that_is_lost_with_the_manifest_out_of_reach_is_unknown(graph: Graph) -> None:
    """It has landed, and nobody can see that: neither a success nor a failure may be told."""
    versions = manifest_path(graph) / "_versions"
    away = versions.with_name("away")
    lineage = intent()

    def lose() -> None:
        versions.rename(away)
        raise InjectedFault("publish.after_update_ack_lost")

    with failpoint("publish.after_update_ack_lost", "call", lose), pytest.raises(PublishUnknown):
        Publisher(graph).publish(lineage=lineage)
    away.rename(versions)

    assert head(graph).graph_commit_id == lineage.graph_commit_id


def test_the_expected_version_with_other_content_is_refused(graph: Graph) -> None:
    """A branch that adopts the version of another ref may show the same number with other rows."""
    person = graph.snapshot().entry("node:Person")
    expected = {person.identity: Expectation("node:Person", person.version, "another transaction")}

    with pytest.raises(ExpectedVersionMismatch):
        Publisher(graph).publish(expected=expected)

    assert len(chain(graph)) == 1
    Publisher(graph).publish(expected={person.identity: Expectation.of(person)})
