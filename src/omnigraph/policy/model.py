"""A policy as a value: groups of actors, protected branches, and rules, each of which only allows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from omnigraph.policy.request import Action, ScopeKey

if TYPE_CHECKING:
    from pathlib import Path


class PolicyKind(StrEnum):
    """What a policy is for."""

    GRAPH = "graph"
    SERVER = "server"


class RuleScope(StrEnum):
    """Which branches a rule is about."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Actions that a group may take, on the branches of a scope; without a scope, also on no branch."""

    id: str
    group: str
    actions: tuple[Action, ...]
    scope_key: ScopeKey | None = None
    scope: RuleScope = RuleScope.ANY


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy file, read and checked; `name` is what people call it."""

    name: str
    kind: PolicyKind = PolicyKind.GRAPH
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protected_branches: frozenset[str] = frozenset()
    rules: tuple[PolicyRule, ...] = ()

    @staticmethod
    def read(path: "str | Path") -> "Policy":
        """Read a policy file.

        Raises:
            BadRequest: it cannot be read, or is not a policy; file, line and rule are named.
        """
        from omnigraph.policy.read import read_policy

        return read_policy(path)

    @staticmethod
    def parse(text: str, name: str = "policy") -> "Policy":
        """Read the text of a policy file.

        Raises:
            BadRequest: it is not a policy; line and rule are named.
        """
        from omnigraph.policy.read import parse_policy

        return parse_policy(text, name)

    @property
    def actors(self) -> frozenset[str]:
        """Everybody who is in a group."""
        return frozenset(actor for members in self.groups.values() for actor in members)

    def grants_something(self, actor: str | None) -> bool:
        """Say whether a rule lets an actor do anything, on some branch that a graph could have."""
        return any(
            actor in self.groups[rule.group]
            and (rule.scope is not RuleScope.PROTECTED or self.protected_branches)
            for rule in self.rules
        )

    def is_protected(self, branch: str | None) -> bool:
        """Say whether a branch is protected; no branch is not."""
        return branch is not None and branch in self.protected_branches

    @property
    def sample_branches(self) -> tuple[str, ...]:
        """One branch of each kind that a scope can tell apart, whether or not a graph has it."""
        longest = max((len(name) for name in self.protected_branches), default=0)
        unprotected = "x" * (longest + 1)
        return (unprotected, *sorted(self.protected_branches)[:1])
