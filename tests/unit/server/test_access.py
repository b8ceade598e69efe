"""What a server lets callers do is decided before it starts, and never by leaving something out."""

from pathlib import Path

import pytest

from omnigraph.cli.server_settings import GivenServer
from omnigraph.core.errors import BadRequest, PolicyDenied
from omnigraph.policy.gate import OPEN_GATE, READ_GATE, PolicyGate
from omnigraph.policy.request import Action
from omnigraph.server.access import Access, Need, SomewhereNeed, decide_access, graph_gate, server_gate
from omnigraph.server.settings import ServedGraph, ServerSettings
from omnigraph.server.tokens import ONE_TOKEN, TOKENS_FILE, TOKENS_JSON, TokenDigests
from tests.support.gates import policy_of, policy_text

GRAPHS = (ServedGraph("default", "g.omni"),)
TOKENS = TokenDigests.of([("act-mira", "token")])
POLICY = policy_of("change", actors="act-mira")
SERVER_POLICY = policy_of("graph_list", actors="act-mira")


def test_a_server_is_open_only_if_somebody_says_so() -> None:
    with pytest.raises(BadRequest, match="--unauthenticated") as refused:
        decide_access(ServerSettings(GRAPHS, "default"))

    assert all(name in str(refused.value) for name in (ONE_TOKEN, TOKENS_FILE, TOKENS_JSON))
    assert decide_access(ServerSettings(GRAPHS, "default", is_unauthenticated=True)) is Access.OPEN
    assert decide_access(ServerSettings(GRAPHS, "default", tokens=TOKENS)) is Access.DEFAULT_DENY
    both = ServerSettings(GRAPHS, "default", tokens=TOKENS, is_unauthenticated=True)
    assert decide_access(both) is Access.DEFAULT_DENY


@pytest.mark.case("surfaces", 110)
@pytest.mark.parametrize("is_unauthenticated", [False, True])
def test_a_policy_without_tokens_is_refused(is_unauthenticated: bool) -> None:
    guarded = (ServedGraph("default", "g.omni", policy=POLICY),)

    for settings in (
        ServerSettings(guarded, "default", is_unauthenticated=is_unauthenticated),
        ServerSettings(GRAPHS, "default", is_unauthenticated=is_unauthenticated, policy=SERVER_POLICY),
    ):
        with pytest.raises(BadRequest, match="without tokens") as refused:
            decide_access(settings)
        assert ONE_TOKEN in str(refused.value)
    with_tokens = ServerSettings(guarded, "default", tokens=TOKENS, is_unauthenticated=is_unauthenticated)
    assert decide_access(with_tokens) is Access.POLICY


def test_each_graph_has_the_gate_of_its_policy() -> None:
    assert graph_gate(Access.OPEN, None, "g") is OPEN_GATE
    assert graph_gate(Access.DEFAULT_DENY, None, "g") is READ_GATE
    assert graph_gate(Access.POLICY, None, "g") is READ_GATE
    gate = graph_gate(Access.POLICY, POLICY, "g")
    assert isinstance(gate, PolicyGate)

    Need(Action.CHANGE, "main").ask(gate, "act-mira")
    with pytest.raises(PolicyDenied):
        Need(Action.READ, "main").ask(gate, "act-mira")
    with pytest.raises(PolicyDenied):
        SomewhereNeed(Action.READ).ask(gate, "act-mira")
    with pytest.raises(PolicyDenied, match="graph_list"):
        Need(Action.GRAPH_LIST).ask(server_gate(None), "act-mira")
    Need(Action.GRAPH_LIST).ask(server_gate(SERVER_POLICY), "act-mira")
    with pytest.raises(PolicyDenied):
        Need(Action.GRAPH_LIST).ask(server_gate(SERVER_POLICY), "eve")


PROJECT = """\
graphs:
  a: { uri: a.omni }
  b: { uri: b.omni, policy: { file: own.yaml } }
"""


def settings_of(text: str, folder: Path, target: str | None = None, uri: str | None = None) -> ServerSettings:
    (folder / "omnigraph.yaml").write_text(text, encoding="utf-8")
    given = GivenServer(uri, str(folder), target, None, None, is_unauthenticated=True)
    return given.settings()


@pytest.mark.case("surfaces", 549)
def test_a_project_names_the_policy_of_each_graph_and_of_the_server(tmp_path: Path) -> None:
    for name, rule in (("own", "change"), ("project", "read"), ("server", "graph_list")):
        (tmp_path / f"{name}.yaml").write_text(policy_text(rule))

    def names(settings: ServerSettings) -> list[str | None]:
        policies = (*(graph.policy for graph in settings.graphs), settings.policy)
        return [None if policy is None else policy.name for policy in policies]

    assert names(settings_of(PROJECT, tmp_path)) == [None, "own", None]
    of_project = PROJECT + "policy: { file: project.yaml }\n"
    assert names(settings_of(of_project, tmp_path)) == ["project", "own", None]
    assert names(settings_of(of_project, tmp_path, target="b")) == ["own", None]
    assert names(settings_of(of_project, tmp_path, uri="c.omni")) == ["project", None]
    of_server = PROJECT + "policy: { file: server.yaml }\n"
    assert names(settings_of(of_server, tmp_path)) == [None, "own", "server"]
    both = of_project + "server: { policy: { file: server.yaml } }\n"
    assert names(settings_of(both, tmp_path)) == ["project", "own", "server"]

    for wrong, reason in (
        (of_project + "server: { policy: { file: own.yaml } }\n", "own.yaml"),
        (PROJECT.replace("own.yaml", "server.yaml"), "server"),
        (PROJECT.replace("own.yaml", "missing.yaml"), "missing.yaml"),
        (PROJECT + "policy: { file: missing.yaml }\n", "missing.yaml"),
    ):
        with pytest.raises(BadRequest, match=reason):
            settings_of(wrong, tmp_path)
