"""What is asked of a gate: the actions, and who wants which of them where."""

from dataclasses import dataclass
from enum import StrEnum


class ScopeKey(StrEnum):
    """Which branch of a request a rule's scope looks at, by its name in a policy file."""

    BRANCH = "branch_scope"
    TARGET_BRANCH = "target_branch_scope"


class Action(StrEnum):
    """Everything that a policy decides about."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    INVOKE_QUERY = "invoke_query"
    ADMIN = "admin"
    GRAPH_LIST = "graph_list"

    @property
    def scope_key(self) -> ScopeKey | None:
        """The scope that a rule with this action may have."""
        return _SCOPE_KEYS.get(self)

    @property
    def is_of_server(self) -> bool:
        """Whether it concerns a server and no graph of it."""
        return self is Action.GRAPH_LIST


_SCOPE_KEYS = {
    Action.READ: ScopeKey.BRANCH,
    Action.EXPORT: ScopeKey.BRANCH,
    Action.CHANGE: ScopeKey.BRANCH,
    Action.SCHEMA_APPLY: ScopeKey.TARGET_BRANCH,
    Action.BRANCH_CREATE: ScopeKey.TARGET_BRANCH,
    Action.BRANCH_DELETE: ScopeKey.TARGET_BRANCH,
    Action.BRANCH_MERGE: ScopeKey.TARGET_BRANCH,
}


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """One thing that somebody wants to do; blanks around the names of branches are no part of them."""

    actor: str | None
    action: Action
    branch: str | None = None
    target_branch: str | None = None

    def __post_init__(self) -> None:
        """Trim the branches: `" main "` is main, and is protected as main is."""
        for name in ("branch", "target_branch"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, given.strip())

    @property
    def concerned(self) -> str | None:
        """The branch that the action is about."""
        return self.target_branch if self.action.scope_key is ScopeKey.TARGET_BRANCH else self.branch


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What a policy says to a request, by which rule, and in words."""

    is_allowed: bool
    rule_id: str | None
    message: str
