"""What a gate lets through, what it says, and what it writes down."""

import logging

import pytest

from omnigraph.core.errors import PolicyDenied
from omnigraph.policy.cedar import compile_policy
from omnigraph.policy.gate import CLOSED_GATE, OPEN_GATE, READ_GATE, PolicyGate
from omnigraph.policy.model import Policy
from omnigraph.policy.request import AccessRequest, Action
from tests.unit.policy.test_read import GOOD

GATE = PolicyGate.of(Policy.parse(GOOD))


def denial(request: AccessRequest, gate: PolicyGate = GATE) -> PolicyDenied:
    with pytest.raises(PolicyDenied) as denied:
        gate.require(request)
    return denied.value


def test_a_denial_says_who_may_not_do_what_where() -> None:
    found = denial(AccessRequest("act-tomas", Action.CHANGE, "main"))

    assert str(found) == "policy denied action 'change' on branch 'main' for actor 'act-tomas'"
    assert (found.action, found.actor, found.branch, found.target_branch) == (
        "change",
        "act-tomas",
        "main",
        None,
    )
    merge = denial(AccessRequest("act-mira", Action.BRANCH_MERGE, "june", "main"))
    assert str(merge) == "policy denied action 'branch_merge' on branch 'main' for actor 'act-mira'"
    assert (merge.branch, merge.target_branch) == ("june", "main")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (AccessRequest(None, Action.CHANGE, "june"), "names no actor"),
        (AccessRequest("eve", Action.CHANGE, "june"), "'eve': the actor is in no group"),
        (AccessRequest("act-mira", Action.READ), "denied action 'read' for actor 'act-mira'"),
        (AccessRequest("act-mira\ud800", Action.READ, "june"), "in no group"),
    ],
)
def test_a_denial_says_why(request_: AccessRequest, reason: str) -> None:
    assert reason in str(denial(request_))


@pytest.mark.case("surfaces", 160)
def test_blanks_around_a_branch_are_no_way_past_its_protection() -> None:
    denial(AccessRequest("act-mira", Action.CHANGE, " main "))
    GATE.require(AccessRequest("act-mira", Action.CHANGE, " june "))
    GATE.require(AccessRequest("act-ines", Action.SCHEMA_APPLY, None, "\tmain\n"))
    GATE.require(AccessRequest("act-mira", Action.CHANGE, "june\ud800"))  # which no graph has


def test_who_may_read_some_branches_is_told_from_who_may_read_all_or_none() -> None:
    everywhere = PolicyGate.of(Policy.parse(GOOD.replace("branch_scope: unprotected", "branch_scope: any")))

    assert GATE.require_somewhere("act-mira", Action.READ) is False
    assert everywhere.require_somewhere("act-mira", Action.READ) is True
    with pytest.raises(PolicyDenied, match="'read' for actor 'act-ines'"):
        GATE.require_somewhere("act-ines", Action.READ)


@pytest.mark.case("surfaces", 690)
def test_whom_no_rule_grants_anything_may_not_know_what_is_guarded(caplog: pytest.LogCaptureFixture) -> None:
    empty = PolicyGate.of(
        Policy.parse(
            "version: 1\ngroups: { g: [ann] }\nrules:\n"
            "  - { id: r, allow: { actors: { group: g }, actions: [read], branch_scope: protected } }\n"
        )
    )

    with caplog.at_level(logging.INFO, "omnigraph.policy"):
        assert GATE.is_known_to("act-mira")
        assert not caplog.records
        assert not GATE.is_known_to("eve")
        assert not GATE.is_known_to(None)
        assert not empty.is_known_to("ann")  # what is protected, where nothing is
    assert caplog.messages[0] == "policy denied actor='eve': no rule grants anything"
    assert [vars(record)["outcome"] for record in caplog.records] == ["denied"] * 3


def test_gates_without_a_policy() -> None:
    for gate in (OPEN_GATE, READ_GATE, CLOSED_GATE):
        assert gate.is_known_to(None)
    for action in Action:
        request = AccessRequest(None, action, "main")
        OPEN_GATE.require(request)
        assert OPEN_GATE.require_somewhere(None, action)
        assert READ_GATE.allows(request) is (action is Action.READ)
        with pytest.raises(PolicyDenied, match="graph_list"):
            CLOSED_GATE.require(request)
        with pytest.raises(PolicyDenied, match="graph_list"):
            CLOSED_GATE.require_somewhere(None, action)
        assert not CLOSED_GATE.allows(request)
    READ_GATE.require_somewhere(None, Action.READ)
    with pytest.raises(PolicyDenied, match="default-deny"):
        READ_GATE.require_somewhere("ann", Action.CHANGE)


@pytest.mark.case("surfaces", 551)
def test_decisions_are_written_down(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "omnigraph.policy"):
        GATE.require(AccessRequest("act-mira", Action.CHANGE, "june"))
        denial(AccessRequest("act-mira", Action.BRANCH_MERGE, "june", "main"))

    allowed, denied = caplog.records
    assert allowed.getMessage() == (
        "policy allowed actor='act-mira' action='change' branch='june' target_branch=None rule='crew-work'"
    )
    assert vars(denied) | {
        "actor": "act-mira",
        "action": "branch_merge",
        "branch": "june",
        "target_branch": "main",
        "outcome": "denied",
        "rule": None,
    } == vars(denied)


def test_the_text_of_cedar_has_one_permit_for_each_action_of_a_rule() -> None:
    text = compile_policy(Policy.parse(GOOD), "atlas")

    assert text.count("permit (") == 5
    assert 'resource == Omnigraph::Graph::"atlas"' in text
    assert "context.has_branch && !context.branch_is_protected" in text
    assert "context.has_target_branch && context.target_branch_is_protected" in text
