"""The gate: the one object that every entry of the engine, and every route of a server, asks.

G1  Nothing passes that the gate was not asked about; where it says no, `PolicyDenied` says so, and nothing
    else has happened.
G2  Without an actor nobody passes the gate of a policy.
G3  Whoever a policy grants nothing at all may not even know whether what it guards is there.
G4  Each decision is logged: who, what, where, the outcome and the rule.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from omnigraph.core.errors import PolicyDenied
from omnigraph.policy.request import AccessRequest, Action, PolicyDecision

if TYPE_CHECKING:
    from omnigraph.policy.cedar import CedarRules
    from omnigraph.policy.model import Policy

_log = logging.getLogger("omnigraph.policy")
_DEFAULT_DENY = "default-deny: only read is permitted until a policy bundle is applied"
_NO_LISTING = "the graphs of a server are listed only for callers that a server policy grants 'graph_list'"


class Gate(Protocol):
    """Lets requests pass, or not."""

    def require(self, request: AccessRequest, /) -> None:
        """Let a request pass.

        Raises:
            PolicyDenied: it may not (G1).
        """
        ...

    def allows(self, request: AccessRequest, /) -> bool:
        """Say whether a request may pass."""
        ...

    def require_somewhere(self, actor: str | None, action: Action, /) -> bool:
        """Let pass who may do something on some branch; return whether they may on every one.

        For calls of which only storage knows the branch: who may do nothing anywhere learns nothing from it.

        Raises:
            PolicyDenied: this actor may do it on no branch.
        """
        ...

    def is_known_to(self, actor: str | None, /) -> bool:
        """Say whether an actor may know that there is something behind the gate (G3)."""
        ...


class OpenGate:
    """Lets everything pass: there is no policy."""

    def require(self, _request: AccessRequest, /) -> None:
        """Let it pass."""

    def allows(self, _request: AccessRequest, /) -> bool:
        """Say yes."""
        return True

    def require_somewhere(self, _actor: str | None, _action: Action, /) -> bool:
        """Let it pass, everywhere."""
        return True

    def is_known_to(self, _actor: str | None, /) -> bool:
        """Say yes."""
        return True


OPEN_GATE = OpenGate()


class ReadGate:
    """Lets reads pass and nothing else: a server with tokens and without a policy."""

    def require(self, request: AccessRequest, /) -> None:
        """Let a read pass.

        Raises:
            PolicyDenied: it is none.
        """
        if not self.allows(request):
            raise _denied(request, _DEFAULT_DENY)

    def allows(self, request: AccessRequest, /) -> bool:
        """Say whether it is a read."""
        return request.action is Action.READ

    def require_somewhere(self, actor: str | None, action: Action, /) -> bool:
        """Let reads pass, everywhere.

        Raises:
            PolicyDenied: it is none.
        """
        self.require(AccessRequest(actor, action))
        return True

    def is_known_to(self, _actor: str | None, /) -> bool:
        """Say yes: everybody may read."""
        return True


READ_GATE = ReadGate()


class ClosedGate:
    """Lets nobody list the graphs of a server: there is no policy of kind server."""

    def require(self, request: AccessRequest, /) -> None:
        """Refuse.

        Raises:
            PolicyDenied: always.
        """
        raise _denied(request, _NO_LISTING)

    def allows(self, _request: AccessRequest, /) -> bool:
        """Say no."""
        return False

    def require_somewhere(self, actor: str | None, action: Action, /) -> bool:
        """Refuse.

        Raises:
            PolicyDenied: always.
        """
        raise _denied(AccessRequest(actor, action), _NO_LISTING)

    def is_known_to(self, _actor: str | None, /) -> bool:
        """Say yes: whoever asks a server knows it."""
        return True


CLOSED_GATE = ClosedGate()


@dataclass(frozen=True, slots=True)
class PolicyGate:
    """Lets pass what a policy allows."""

    rules: "CedarRules"

    @staticmethod
    def of(policy: "Policy", graph_id: str | None = None) -> "PolicyGate":
        """Install a policy for a graph, or for the server."""
        from omnigraph.policy.cedar import DEFAULT_GRAPH, CedarRules

        return PolicyGate(CedarRules.of(policy, DEFAULT_GRAPH if graph_id is None else graph_id))

    def require(self, request: AccessRequest, /) -> None:
        """Let a request pass that a rule allows.

        Raises:
            PolicyDenied: no rule does.
        """
        decision = self.decide(request)
        if not decision.is_allowed:
            raise _denied(request, decision.message)

    def allows(self, request: AccessRequest, /) -> bool:
        """Say whether a rule allows a request."""
        return self.decide(request).is_allowed

    def require_somewhere(self, actor: str | None, action: Action, /) -> bool:
        """Let pass who may do something on some branch; return whether they may on every one.

        What is allowed without a branch is allowed on each: a scope that leaves one out wants one.

        Raises:
            PolicyDenied: this actor may do it on no branch.
        """
        everywhere = AccessRequest(actor, action)
        if self.rules.allowing(everywhere):
            return self.allows(everywhere)
        somewhere = (AccessRequest(actor, action, branch) for branch in self.rules.policy.sample_branches)
        if not any(self.rules.allowing(request) for request in somewhere):
            self.require(everywhere)
        return False

    def is_known_to(self, actor: str | None, /) -> bool:
        """Say whether the policy grants an actor anything; that it does not is logged (G3, G4)."""
        is_known = self.rules.policy.grants_something(actor)
        if not is_known:
            _log.info(
                "policy denied actor=%r: no rule grants anything",
                actor,
                extra={
                    "actor": actor,
                    "action": None,
                    "branch": None,
                    "target_branch": None,
                    "outcome": "denied",
                    "rule": None,
                },
            )
        return is_known

    def decide(self, request: AccessRequest) -> PolicyDecision:
        """Return what the policy says, and log it (G4)."""
        decision = decide(self.rules, request)
        if _log.isEnabledFor(logging.INFO):
            _note(request, decision)
        return decision


def decide(rules: "CedarRules", request: AccessRequest) -> PolicyDecision:
    """Return what a policy says to a request, with the smallest id of the rules that allow it."""
    allowing = rules.allowing(request)
    if allowing:
        return PolicyDecision(True, allowing[0], f"rule '{allowing[0]}' allows it")
    denial = denial_of(request)
    if request.actor is None:
        return PolicyDecision(False, None, f"{denial}: a policy applies, and the call names no actor")  # G2
    if request.actor not in rules.policy.actors:
        return PolicyDecision(False, None, f"{denial}: the actor is in no group of the policy")
    return PolicyDecision(False, None, denial)


def denial_of(request: AccessRequest) -> str:
    """Return the words of a denial."""
    where = "" if request.concerned is None else f" on branch '{request.concerned}'"
    who = "" if request.actor is None else f" for actor '{request.actor}'"
    return f"policy denied action '{request.action}'{where}{who}"


def _denied(request: AccessRequest, reason: str) -> PolicyDenied:
    return PolicyDenied(
        action=request.action.value,
        actor=request.actor,
        branch=request.branch,
        target_branch=request.target_branch,
        reason=reason,
    )


def _note(request: AccessRequest, decision: PolicyDecision) -> None:
    outcome = "allowed" if decision.is_allowed else "denied"
    about = {
        "actor": request.actor,
        "action": request.action.value,
        "branch": request.branch,
        "target_branch": request.target_branch,
        "outcome": outcome,
        "rule": decision.rule_id,
    }
    told = " ".join(f"{name}={value!r}" for name, value in about.items() if name != "outcome")
    _log.info("policy %s %s", outcome, told, extra=about)
