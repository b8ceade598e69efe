"""Gates that tests put before an engine: one that takes notes, and policies in few words."""

from collections.abc import Callable

from omnigraph.core.errors import PolicyDenied
from omnigraph.graph.graph import Graph
from omnigraph.policy.gate import Gate, PolicyGate, denial_of
from omnigraph.policy.model import Policy
from omnigraph.policy.request import AccessRequest, Action
from tests.support.seam import internals


class NotingGate:
    """Notes what it was asked, and lets pass what a test says: nothing, unless told otherwise."""

    def __init__(self, may_pass: Callable[[AccessRequest], bool] = lambda _: False) -> None:
        self.may_pass = may_pass
        self.asked: list[AccessRequest] = []

    def require(self, request: AccessRequest, /) -> None:
        if not self.allows(request):
            raise PolicyDenied(
                action=request.action.value,
                actor=request.actor,
                branch=request.branch,
                target_branch=request.target_branch,
                reason=denial_of(request),
            )

    def allows(self, request: AccessRequest, /) -> bool:
        self.asked.append(request)
        return self.may_pass(request)

    def require_somewhere(self, actor: str | None, action: Action, /) -> bool:
        self.require(AccessRequest(actor, action))
        return True

    def is_known_to(self, _actor: str | None, /) -> bool:
        return True


def install(graph: Graph, gate: Gate) -> None:
    """Put a gate before a graph that is open."""
    internals(graph).gate = gate


def note(graph: Graph, *, is_open: bool) -> NotingGate:
    """Put a gate before a graph that lets everything or nothing pass."""
    gate = NotingGate(lambda _: is_open)
    install(graph, gate)
    return gate


def policy_of(*rules: str, protected: str = "main", actors: str = "ann, ben") -> Policy:
    """Return a policy for one group, `all`; a rule is its actions, and perhaps a scope behind a semicolon."""
    return Policy.parse(policy_text(*rules, protected=protected, actors=actors))


def policy_text(*rules: str, protected: str = "main", actors: str = "ann, ben") -> str:
    """Return the text of such a policy."""
    lines = [f"version: 1\ngroups: {{ all: [{actors}] }}\nprotected_branches: [{protected}]\nrules:"]
    for number, rule in enumerate(rules):
        actions, _, scope = rule.partition(";")
        more = f", {scope.strip()}" if scope else ""
        allow = f"{{ actors: {{ group: all }}, actions: [{actions.strip()}]{more} }}"
        lines.append(f"  - {{ id: rule-{number}, allow: {allow} }}")
    return "\n".join(lines) + "\n"


def guard(graph: Graph, *rules: str, protected: str = "main") -> None:
    """Put a policy before a graph."""
    install(graph, PolicyGate.of(policy_of(*rules, protected=protected)))
