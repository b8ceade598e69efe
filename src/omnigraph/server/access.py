"""What callers may do, decided once when a server starts: its state, a gate for each graph, and its own.

T1  A server without tokens is open only if its operator says so, and has no policy.
T2  With tokens, a graph with a policy is decided by it; of a graph without one callers may read, and do
    nothing else.
T3  The graphs of a server are listed only for whom a policy of kind server lets.

The gate of a graph is the one that its engine asks as well.
"""

from dataclasses import dataclass
from enum import Enum

from omnigraph.core.errors import BadRequest
from omnigraph.policy.gate import CLOSED_GATE, OPEN_GATE, READ_GATE, Gate, PolicyGate
from omnigraph.policy.model import Policy
from omnigraph.policy.request import AccessRequest, Action
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import ONE_TOKEN, TOKENS_FILE, TOKENS_JSON


class Access(Enum):
    """The state a server runs in."""

    OPEN = "open"
    DEFAULT_DENY = "default-deny"
    POLICY = "policy"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a request wants to do: an action, and the branches that it concerns."""

    action: Action
    branch: str | None = None
    target: str | None = None

    def ask(self, gate: Gate, actor: str | None) -> None:
        """Ask for it.

        Raises:
            PolicyDenied: this caller may not.
        """
        gate.require(AccessRequest(actor, self.action, self.branch, self.target))


@dataclass(frozen=True, slots=True)
class SomewhereNeed:
    """Something on a branch that only storage knows: the engine asks for that, when it is found."""

    action: Action

    def ask(self, gate: Gate, actor: str | None) -> None:
        """Ask whether the caller may do it on any branch.

        Raises:
            PolicyDenied: they may not.
        """
        gate.require_somewhere(actor, self.action)


AnyNeed = Need | SomewhereNeed


def decide_access(settings: ServerSettings) -> Access:
    """Return the state that a server runs in.

    Raises:
        BadRequest: there is no token, and nobody said that none is needed, or a policy needs them.
    """
    policies = [graph.policy for graph in settings.graphs if graph.policy is not None]
    has_policy = bool(policies) or settings.policy is not None
    if settings.tokens:
        return Access.POLICY if has_policy else Access.DEFAULT_DENY
    if has_policy:
        raise BadRequest(
            "a policy decides for actors, and without tokens there are none, so no request could pass: "
            f"set {TOKENS_FILE}, {TOKENS_JSON} or {ONE_TOKEN}"
        )
    if settings.is_unauthenticated:
        return Access.OPEN
    raise BadRequest(
        "a server without tokens lets everybody do everything:"
        f" set {TOKENS_FILE}, {TOKENS_JSON} or {ONE_TOKEN}, or say that this is meant with --unauthenticated"
    )


def graph_gate(access: Access, policy: Policy | None, graph_id: str) -> Gate:
    """Return the gate of a graph (T1, T2)."""
    if access is Access.OPEN:
        return OPEN_GATE
    return READ_GATE if policy is None else PolicyGate.of(policy, graph_id)


def server_gate(policy: Policy | None) -> Gate:
    """Return the gate of the server itself (T3)."""
    return CLOSED_GATE if policy is None else PolicyGate.of(policy)
