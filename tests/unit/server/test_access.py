"""What a server lets callers do is decided before it starts, and never by leaving something out."""

from pathlib import Path

import pytest

from omnigraph.cli.server_settings import GivenServer
from omnigraph.core.errors import BadRequest, PolicyDenied
from omnigraph.server.access import GRAPH_LIST, READ, Access, Need, authorize, decide_access
from omnigraph.server.settings import ServedGraph, ServerSettings
from omnigraph.server.tokens import ONE_TOKEN, TOKENS_FILE, TOKENS_JSON, TokenDigests

GRAPHS = (ServedGraph("default", "g.omni"),)
TOKENS = TokenDigests.of([("act-mira", "token")])


def test_a_server_is_open_only_if_somebody_says_so() -> None:
    with pytest.raises(BadRequest, match="--unauthenticated") as refused:
        decide_access(ServerSettings(GRAPHS, "default"))

    assert all(name in str(refused.value) for name in (ONE_TOKEN, TOKENS_FILE, TOKENS_JSON))
    assert decide_access(ServerSettings(GRAPHS, "default", is_unauthenticated=True)) is Access.OPEN
    assert decide_access(ServerSettings(GRAPHS, "default", tokens=TOKENS)) is Access.DEFAULT_DENY
    both = ServerSettings(GRAPHS, "default", tokens=TOKENS, is_unauthenticated=True)
    assert decide_access(both) is Access.DEFAULT_DENY


def test_with_tokens_and_no_policy_callers_may_read() -> None:
    authorize(Access.DEFAULT_DENY, "act-mira", Need(READ, "main"))
    authorize(Access.OPEN, None, Need("schema_apply", target="main"))

    for action in ("change", "export", "branch_create", "branch_delete", "branch_merge", "schema_apply"):
        with pytest.raises(PolicyDenied, match="default-deny"):
            authorize(Access.DEFAULT_DENY, "act-mira", Need(action, "main"))
    for access in Access:
        with pytest.raises(PolicyDenied, match="graph_list"):
            authorize(access, "act-mira", Need(GRAPH_LIST))


@pytest.mark.parametrize(
    "text",
    [
        "policy: {file: p.yaml}\ngraphs: {a: {uri: a.omni}}\n",
        "graphs: {a: {uri: a.omni, policy: {file: p.yaml}}}\n",
    ],
    ids=["project", "graph"],
)
def test_a_policy_that_cannot_be_kept_is_not_ignored(text: str, tmp_path: Path) -> None:
    project = tmp_path / "omnigraph.yaml"
    project.write_text(text, encoding="utf-8")

    given = GivenServer(None, str(project), "a", None, None, is_unauthenticated=True)

    with pytest.raises(BadRequest, match=r"p\.yaml"):
        given.settings()
