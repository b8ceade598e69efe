"""From a policy file to a `Policy`: whatever could grant something else than it says is refused.

P1  An unknown key is an error: a misspelt scope would be none, and no scope is every branch.
P2  A scope stands only beside actions that it applies to.
P3  What could never apply is an error too: a branch that cannot exist, an actor that no caller can be.
"""

from pathlib import Path

from omnigraph.core.limits import POLICY_GROUPS_MAX, POLICY_RULES_MAX
from omnigraph.core.names import RESERVED_ACTOR_PREFIX, branch_name_flaw
from omnigraph.core.values import shown
from omnigraph.core.yaml_text import parse_placed_yaml, read_text
from omnigraph.policy.document import StrictPart
from omnigraph.policy.model import Policy, PolicyKind, PolicyRule, RuleScope
from omnigraph.policy.request import Action, ScopeKey

VERSION = 1
_TOP = ("version", "kind", "groups", "protected_branches", "rules")
_ALLOW = ("actors", "actions", *(key.value for key in ScopeKey))


def read_policy(path: str | Path) -> Policy:
    """Return the policy of a file; it is called as the file without its suffix.

    Raises:
        BadRequest: it cannot be read, or is not a policy.
    """
    place = Path(path)
    return _policy(parse_placed_yaml(read_text(place), str(place)), str(place), place.stem)


def parse_policy(text: str, name: str) -> Policy:
    """Return the policy of a text.

    Raises:
        BadRequest: it is not a policy.
    """
    return _policy(parse_placed_yaml(text, name), name, name)


def _policy(value: object, file: str, name: str) -> Policy:
    top = StrictPart.of(value, file, "a policy")
    top.require_known(_TOP)
    version = top.members.get("version")
    if isinstance(version, bool) or version != VERSION or not isinstance(version, int):
        top.refuse("version", f"'version' must be {VERSION}, and is {shown(version)}")
    groups = _groups(top)
    rules = _rules(top, groups)
    return Policy(name, _kind(top, rules), groups, _protected(top), rules)


def _groups(top: StrictPart) -> dict[str, tuple[str, ...]]:
    if top.members.get("groups") is None:
        return {}
    given = top.part("groups", "")
    if len(given.members) > POLICY_GROUPS_MAX:
        top.refuse("groups", f"there are more than {POLICY_GROUPS_MAX} groups")
    groups: dict[str, tuple[str, ...]] = {}
    for key, value in given.members.items():
        name = given.text(str(key), key, "the name of a group")
        if name in groups:
            given.refuse(key, f"there are two groups '{name}'")
        groups[name] = given.texts(name, value, f"group '{name}'")
        if not groups[name]:
            given.refuse(key, f"group '{name}' is empty")
        reserved = next((actor for actor in groups[name] if actor.startswith(RESERVED_ACTOR_PREFIX)), None)
        if reserved is not None:
            given.refuse(key, f"group '{name}' has '{reserved}', and no caller can be an actor of the engine")
    return groups


def _protected(top: StrictPart) -> frozenset[str]:
    key = "protected_branches"
    if top.members.get(key) is None:
        return frozenset()
    names = frozenset(top.texts(key, top.members[key], f"'{key}'"))
    for name in sorted(names):  # P3
        flaw = branch_name_flaw(name)
        if flaw is not None:
            top.refuse(key, f"{flaw}; a name protects the one branch that has it")
    return names


def _rules(top: StrictPart, groups: dict[str, tuple[str, ...]]) -> tuple[PolicyRule, ...]:
    rules: dict[str, PolicyRule] = {}
    items = top.items("rules")
    if len(items) > POLICY_RULES_MAX:
        top.refuse("rules", f"there are more than {POLICY_RULES_MAX} rules, and each call asks all of them")
    for number, item in enumerate(items, start=1):
        part = StrictPart.of(item, top.file, "a rule", f"rule {number}")
        rule_id = part.required_text("id")
        part = part.named(f"rule '{rule_id}'")
        if rule_id in rules:
            part.refuse("id", "another rule has the same id")
        part.require_known(("id", "allow"))
        rules[rule_id] = _rule(rule_id, part.part("allow", part.owner), groups)
    return tuple(rules.values())


def _rule(rule_id: str, allow: StrictPart, groups: dict[str, tuple[str, ...]]) -> PolicyRule:
    allow.require_known(_ALLOW)
    actors = allow.part("actors", allow.owner)
    actors.require_known(("group",))
    group = actors.required_text("group")
    if group not in groups:
        actors.refuse("group", f"there is no group '{group}'; there are {', '.join(groups) or 'none'}")
    actions = _actions(allow)
    key, scope = _scope(allow)
    for action in actions:
        if key is not None and action.scope_key is not key:  # P2
            takes = "no scope" if action.scope_key is None else f"'{action.scope_key}'"
            allow.refuse(key.value, f"'{action}' does not take '{key}': it takes {takes}")
    if len({action.is_of_server for action in actions}) > 1:
        allow.refuse("actions", "actions of a graph and of a server go in files of their own")
    return PolicyRule(rule_id, group, actions, key, scope)


def _actions(allow: StrictPart) -> tuple[Action, ...]:
    if "actions" not in allow.members:
        allow.refuse(None, "'actions' is missing")
    words = allow.texts("actions", allow.members["actions"], "'actions'")
    if not words:
        allow.refuse("actions", "'actions' is empty")
    known = [action.value for action in Action]
    for word in words:
        if word not in known:
            allow.refuse("actions", f"there is no action {shown(word)}: use {', '.join(known)}")
    return tuple(dict.fromkeys(Action(word) for word in words))


def _scope(allow: StrictPart) -> tuple[ScopeKey | None, RuleScope]:
    given = [key for key in ScopeKey if key.value in allow.members]
    if not given:
        return None, RuleScope.ANY
    if len(given) > 1:
        allow.refuse(given[1].value, "a rule has one scope: give 'branch_scope' or 'target_branch_scope'")
    (key,) = given
    word = allow.required_text(key.value)
    known = [scope.value for scope in RuleScope]
    if word not in known:
        allow.refuse(key.value, f"there is no scope {shown(word)}: use {', '.join(known)}")
    return key, RuleScope(word)


def _kind(top: StrictPart, rules: tuple[PolicyRule, ...]) -> PolicyKind:
    """Return what a policy is for: what its actions say, with which its `kind` must agree."""
    by_rule = {rule.id: _kind_of(rule) for rule in rules}
    said = top.members.get("kind")
    if said is None:
        kinds = list(dict.fromkeys(by_rule.values()))
        kind = kinds[0] if kinds else PolicyKind.GRAPH
    else:
        word = top.required_text("kind")
        if word not in [kind.value for kind in PolicyKind]:
            top.refuse("kind", f"there is no kind {shown(word)}: use {', '.join(PolicyKind)}")
        kind = PolicyKind(word)
    for rule_id, other in by_rule.items():
        if other is not kind:
            top.named(f"rule '{rule_id}'").refuse(
                "kind", f"its actions are those of a {other}, and this is the policy of a {kind}"
            )
    return kind


def _kind_of(rule: PolicyRule) -> PolicyKind:
    return PolicyKind.SERVER if rule.actions[0].is_of_server else PolicyKind.GRAPH
