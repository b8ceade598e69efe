"""What a policy file allows, written down from section 4 of surfaces.md, and from nothing else.

It works on the document as YAML gives it, knows no class of the product, and tries every rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass

BRANCH, TARGET = "branch_scope", "target_branch_scope"
SCOPE_KEY: Mapping[str, str | None] = {
    "read": BRANCH,
    "export": BRANCH,
    "change": BRANCH,
    "schema_apply": TARGET,
    "branch_create": TARGET,
    "branch_delete": TARGET,
    "branch_merge": TARGET,
    "invoke_query": None,
    "admin": None,
    "graph_list": None,
}
SERVER_ACTIONS = ("graph_list",)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to a policy."""

    actor: str | None
    action: str
    branch: str | None = None
    target_branch: str | None = None


def matching(document: Mapping[str, object], asked: Asked) -> list[str]:
    """Return the ids of the rules that allow a request; none means that it is denied."""
    rules = document.get("rules") or []
    assert isinstance(rules, list)
    return sorted(rule["id"] for rule in rules if _allows(document, rule["allow"], asked))


def _allows(document: Mapping[str, object], allow: Mapping[str, object], asked: Asked) -> bool:
    if asked.actor is None:
        return False
    groups, actors, actions = document["groups"], allow["actors"], allow["actions"]
    assert isinstance(groups, dict)
    assert isinstance(actors, dict)
    assert isinstance(actions, list)
    if asked.actor not in groups[actors["group"]]:
        return False
    if asked.action not in actions:
        return False
    return _in_scope(document, str(allow.get(BRANCH, "any")), asked.branch) and _in_scope(
        document, str(allow.get(TARGET, "any")), asked.target_branch
    )


def _in_scope(document: Mapping[str, object], scope: str, branch: str | None) -> bool:
    if scope == "any":
        return True
    if branch is None:
        return False
    protected = document.get("protected_branches") or []
    assert isinstance(protected, list)
    return (branch.strip() in protected) == (scope == "protected")
