"""Policies in Cedar: the text that a policy compiles to, and the decisions that Cedar makes by it.

Y1  Each action of a rule is one `permit`; nothing forbids. What Cedar does not allow is denied, and so is
    what it cannot evaluate.
Y2  A text of the policy file is a string of Cedar, with every character escaped that could end one.
Y3  Requests give their parts as values and not as text, so no name can change what is asked.

This is the one home of `cedarpy`. It is imported when the first policy is installed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.policy.model import Policy, PolicyKind, PolicyRule, RuleScope
from omnigraph.policy.request import AccessRequest, Action, ScopeKey

if TYPE_CHECKING:
    import cedarpy

NAMESPACE = "Omnigraph"
DEFAULT_GRAPH = "default"  # what a graph without a name of its own is called, as in routes
_SERVER = "root"  # the only instance
_CONDITIONS = {
    (ScopeKey.BRANCH, RuleScope.PROTECTED): "context.has_branch && context.branch_is_protected",
    (ScopeKey.BRANCH, RuleScope.UNPROTECTED): "context.has_branch && !context.branch_is_protected",
    (ScopeKey.TARGET_BRANCH, RuleScope.PROTECTED): (
        "context.has_target_branch && context.target_branch_is_protected"
    ),
    (ScopeKey.TARGET_BRANCH, RuleScope.UNPROTECTED): (
        "context.has_target_branch && !context.target_branch_is_protected"
    ),
}
_GRAPH_ACTIONS = ", ".join(action.value for action in Action if not action.is_of_server)
_SERVER_ACTIONS = ", ".join(action.value for action in Action if action.is_of_server)
SCHEMA = f"""\
namespace {NAMESPACE} {{
  entity Group;
  entity Actor in [Group];
  entity Graph;
  entity Server;
  type About = {{
    has_branch: Bool,
    branch: String,
    branch_is_protected: Bool,
    has_target_branch: Bool,
    target_branch: String,
    target_branch_is_protected: Bool,
  }};
  action {_GRAPH_ACTIONS}
    appliesTo {{ principal: [Actor], resource: [Graph], context: About }};
  action {_SERVER_ACTIONS}
    appliesTo {{ principal: [Actor], resource: [Server], context: About }};
}}
"""


def compile_policy(policy: Policy, graph_id: str = DEFAULT_GRAPH) -> str:
    """Return a policy as the text of Cedar that decides for a graph, or for the server."""
    return "\n".join(_permits(policy, graph_id))


def _permits(policy: Policy, graph_id: str) -> Iterator[str]:
    resource = _resource(policy.kind, graph_id)
    for rule in policy.rules:
        for action in rule.actions:
            yield (
                f"@id({_string(rule.id)})\n"
                f"permit (\n"
                f"  principal in {NAMESPACE}::Group::{_string(rule.group)},\n"
                f"  action == {NAMESPACE}::Action::{_string(action)},\n"
                f"  resource == {NAMESPACE}::{resource['type']}::{_string(resource['id'])}\n"
                f"){_when(rule)};\n"
            )


def _when(rule: PolicyRule) -> str:
    if rule.scope_key is None or rule.scope is RuleScope.ANY:
        return ""
    return f"\nwhen {{ {_CONDITIONS[rule.scope_key, rule.scope]} }}"


def _resource(kind: PolicyKind, graph_id: str) -> dict[str, str]:
    if kind is PolicyKind.SERVER:
        return {"type": "Server", "id": _SERVER}
    return {"type": "Graph", "id": graph_id}


def _string(text: str) -> str:
    """Return a text as a string of Cedar (Y2)."""
    plain = "".join(
        character if character.isprintable() and character not in '"\\' else f"\\u{{{ord(character):x}}}"
        for character in text
    )
    return f'"{plain}"'


@dataclass(frozen=True, slots=True)
class CedarRules:
    """A policy as Cedar holds it: parsed once, asked by any number of threads."""

    policy: Policy
    resource: dict[str, str]
    rules: "cedarpy.PolicySet"
    entities: "cedarpy.Entities"
    ids: dict[str, str]  # of our rules, by Cedar's own names for the permits

    @staticmethod
    def of(policy: Policy, graph_id: str = DEFAULT_GRAPH) -> "CedarRules":
        """Compile a policy and hand it to Cedar."""
        import cedarpy
        import orjson

        text = compile_policy(policy, graph_id)
        permits = orjson.loads(cedarpy.policies_to_json_str(text))["staticPolicies"]
        resource = _resource(policy.kind, graph_id)
        return CedarRules(
            policy,
            _entity(resource["type"], resource["id"]),
            cedarpy.PolicySet.from_str(text),
            cedarpy.Entities.from_json_str(orjson.dumps(_members(policy)).decode()),
            {name: permit["annotations"]["id"] for name, permit in permits.items()},
        )

    def allowing(self, request: AccessRequest) -> list[str]:
        """Return the ids of the rules that allow a request, sorted; none means that it is denied (Y1)."""
        import cedarpy

        if request.actor is None or request.actor not in self.policy.actors:
            return []
        asked = {
            "principal": _entity("Actor", request.actor),
            "action": _entity("Action", request.action.value),
            "resource": self.resource,
            "context": {
                "has_branch": request.branch is not None,
                "branch": _told(request.branch or ""),
                "branch_is_protected": self.policy.is_protected(request.branch),
                "has_target_branch": request.target_branch is not None,
                "target_branch": _told(request.target_branch or ""),
                "target_branch_is_protected": self.policy.is_protected(request.target_branch),
            },
        }
        answer = cedarpy.is_authorized(asked, self.rules, self.entities)
        if not answer.allowed:
            return []
        return sorted({self.ids[name] for name in answer.diagnostics.reasons})


def _members(policy: Policy) -> list[dict[str, object]]:
    """Return who is in which groups, as Cedar takes it."""
    groups: dict[str, list[dict[str, str]]] = {actor: [] for actor in sorted(policy.actors)}
    for group, members in policy.groups.items():
        for actor in members:
            groups[actor].append(_entity("Group", group))
    return [
        {"uid": _entity("Actor", actor), "attrs": {}, "parents": parents} for actor, parents in groups.items()
    ]


def _entity(kind: str, id: str) -> dict[str, str]:
    return {"type": f"{NAMESPACE}::{kind}", "id": id}


def _told(text: str) -> str:
    """Return the name of a branch as Cedar takes it, which is text; no rule looks at it."""
    return text.encode(errors="replace").decode()
