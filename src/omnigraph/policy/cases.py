"""`policy test`: what a policy is expected to decide, case by case."""

from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.values import shown
from omnigraph.core.yaml_text import read_placed_yaml
from omnigraph.policy.cedar import CedarRules
from omnigraph.policy.document import StrictPart
from omnigraph.policy.gate import decide
from omnigraph.policy.model import Policy
from omnigraph.policy.read import VERSION
from omnigraph.policy.request import AccessRequest, Action

_CASE = ("id", "actor", "action", "branch", "target_branch", "expect")
_EXPECT = {"allow": True, "deny": False}


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """One request, and whether it is to be allowed."""

    id: str
    request: AccessRequest
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A case that a policy decides otherwise than expected, and what it says."""

    case: PolicyCase
    message: str

    def __str__(self) -> str:
        """Return it in words."""
        wanted, found = ("allow", "deny") if self.case.is_allowed else ("deny", "allow")
        return f"{self.case.id}: expected {wanted}, decided {found}: {self.message}"


def read_cases(path: str | Path) -> tuple[PolicyCase, ...]:
    """Return the cases of a file.

    Raises:
        BadRequest: it cannot be read, or a case is malformed; file, line and case are named.
    """
    top = StrictPart.of(read_placed_yaml(Path(path)), str(path), "a file of policy tests")
    top.require_known(("version", "cases"))
    version = top.members.get("version")
    if isinstance(version, bool) or version != VERSION:
        top.refuse("version", f"'version' must be {VERSION}, and is {shown(version)}")
    cases: dict[str, PolicyCase] = {}
    for number, item in enumerate(top.items("cases"), start=1):
        part = StrictPart.of(item, top.file, "a case", f"case {number}")
        case_id = part.required_text("id")
        part = part.named(f"case '{case_id}'")
        if case_id in cases:
            part.refuse("id", "another case has the same id")
        part.require_known(_CASE)
        cases[case_id] = PolicyCase(case_id, _request(part), _EXPECT[_word(part, "expect", [*_EXPECT])])
    return tuple(cases.values())


def mismatches(policy: Policy, cases: tuple[PolicyCase, ...]) -> tuple[Mismatch, ...]:
    """Return the cases that a policy does not decide as expected."""
    rules = CedarRules.of(policy)
    decided = ((case, decide(rules, case.request)) for case in cases)
    return tuple(
        Mismatch(case, decision.message)
        for case, decision in decided
        if decision.is_allowed is not case.is_allowed
    )


def _request(part: StrictPart) -> AccessRequest:
    action = Action(_word(part, "action", [action.value for action in Action]))
    branch, target = (
        part.required_text(key) if part.members.get(key) is not None else None
        for key in ("branch", "target_branch")
    )
    return AccessRequest(part.required_text("actor"), action, branch, target)


def _word(part: StrictPart, key: str, known: list[str]) -> str:
    word = part.required_text(key)
    if word not in known:
        part.refuse(key, f"{key} {shown(word)} is not one of {', '.join(known)}")
    return word
