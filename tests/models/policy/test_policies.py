"""Random policies, decided by the product and by a reading of the specification that looks at every rule."""

import json
from random import Random

import cedarpy
import pytest

from omnigraph.policy.cedar import SCHEMA, CedarRules, compile_policy
from omnigraph.policy.gate import PolicyGate, decide
from omnigraph.policy.model import Policy
from omnigraph.policy.request import AccessRequest, Action
from tests.models.policy.evaluator import SCOPE_KEY, Asked, matching
from tests.models.policy.generate import policy, questions
from tests.support.seeds import fixed_seed, fresh_seed

QUICK, MANY = 150, 2_000
QUESTIONS = 20


@pytest.mark.case("surfaces", 540)
@pytest.mark.case("surfaces", 554)
def test_some_policies_decide_as_the_specification_says() -> None:
    assert differences(QUICK, fixed_seed("POLICY_SEED")) == []


@pytest.mark.slow
@pytest.mark.case("surfaces", 540)
def test_two_thousand_policies_decide_as_the_specification_says() -> None:
    assert differences(MANY, fixed_seed("POLICY_SEED")) == []


@pytest.mark.fuzz
def test_thousands_of_other_policies_decide_as_the_specification_says() -> None:
    assert differences(MANY, fresh_seed("POLICY_SEED")) == []


@pytest.mark.case("surfaces", 540)
@pytest.mark.case("surfaces", 552)
def test_what_policies_compile_to_fits_the_schema() -> None:
    random = Random(fixed_seed("POLICY_SEED"))
    for _ in range(50):
        document = policy(random)
        found = Policy.parse(json.dumps(document))

        text = compile_policy(found, "atlas")

        assert cedarpy.validate_policies(text, SCHEMA).errors == []
        assert text.count("permit (") == sum(len(rule.actions) for rule in found.rules)


def differences(count: int, seed: int) -> list[str]:
    """Return where the two disagree over random policies."""
    random = Random(seed)
    found = []
    for number in range(count):
        document = policy(random)
        rules = CedarRules.of(Policy.parse(json.dumps(document), f"policy {number}"))
        for asked in questions(random, QUESTIONS):
            expected = matching(document, asked)
            decision = decide(rules, request_of(asked))
            if (decision.is_allowed, decision.rule_id) != (bool(expected), min(expected, default=None)):
                found.append(f"{number} of {seed}: {asked}: {expected} and {decision}")
        found += _somewhere(document, PolicyGate(rules), random)
    return found


def _somewhere(document: dict[str, object], gate: PolicyGate, random: Random) -> list[str]:
    """Compare who may do something somewhere with every branch that a test can think of."""
    from omnigraph.core.errors import PolicyDenied
    from tests.models.policy.generate import ACTORS, BRANCHES

    actor = random.choice(ACTORS)
    allowed = [bool(matching(document, Asked(actor, "read", branch))) for branch in (*BRANCHES, "other")]
    known = gate.is_known_to(actor)
    pairs = [(branch, branch) for branch in (*BRANCHES, "other")]
    if known != any(
        matching(document, Asked(actor, action, *pair)) for action in SCOPE_KEY for pair in pairs
    ):
        return [f"{document}: {actor} is told {known} of what is granted at all"]
    try:
        is_everywhere = gate.require_somewhere(actor, Action.READ)
    except PolicyDenied:
        return [f"{document}: {actor} may read somewhere"] if any(allowed) else []
    everywhere = bool(matching(document, Asked(actor, "read")))
    is_right = any(allowed) and is_everywhere == everywhere and (all(allowed) or not is_everywhere)
    return [] if is_right else [f"{document}: {actor} may read {allowed}, and is told {is_everywhere}"]


def request_of(asked: Asked) -> AccessRequest:
    """Return a question as the product takes it."""
    return AccessRequest(asked.actor, Action(asked.action), asked.branch, asked.target_branch)
