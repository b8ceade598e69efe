"""What a caller gives as a policy, as the gate that it installs."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from omnigraph.core.errors import BadRequest
from omnigraph.core.values import named
from omnigraph.operations.context import check_actor
from omnigraph.policy.gate import OPEN_GATE, Gate, PolicyGate
from omnigraph.policy.request import AccessRequest, Action

if TYPE_CHECKING:
    from omnigraph.policy.model import Policy

    GivenPolicy: TypeAlias = Policy | str | Path  # a text of several lines is YAML, any other one is a path


def given_gate(policy: "GivenPolicy | None") -> Gate:
    """Return the gate of a policy; without one, the gate that everything passes.

    Raises:
        BadRequest: the policy cannot be read, is for servers, or is none.
    """
    if policy is None:
        return OPEN_GATE
    return PolicyGate.of(graph_policy(policy))


def require(
    policy: "GivenPolicy | None", actor: str | None, action: Action, branch: str | None = None
) -> None:
    """Check a call of a function that opens no graph for it, as a handle checks its own.

    Raises:
        PolicyDenied: the policy does not allow this to the actor.
        BadRequest: the policy cannot be used, or no actor is called so.
    """
    gate = given_gate(policy)
    if actor is not None:
        check_actor(actor)
    gate.require(AccessRequest(actor, action, branch))


def graph_policy(policy: "GivenPolicy") -> "Policy":
    """Return the policy of a graph.

    Raises:
        BadRequest: it cannot be read, is for servers, or is none.
    """
    from omnigraph.policy.model import PolicyKind

    found = _given(policy)
    if found.kind is not PolicyKind.GRAPH:
        raise BadRequest(f"policy '{found.name}' is for a {found.kind}: a graph needs one of kind graph")
    return found


def policy_of_project(file: Path | None) -> "Policy | None":
    """Return the policy of a whole project as one for its graphs; none if it is the one for its server.

    Raises:
        BadRequest: it cannot be read.
    """
    from omnigraph.policy.model import Policy, PolicyKind

    found = None if file is None else Policy.read(file)
    return found if found is not None and found.kind is PolicyKind.GRAPH else None


def _given(policy: object) -> "Policy":
    from omnigraph.policy.model import Policy

    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str) and "\n" in policy:
        return Policy.parse(policy)
    if isinstance(policy, str | Path):
        return Policy.read(policy)
    raise BadRequest(f"expected a policy, its text or the path of its file, not {named(policy)}")
