"""A policy file is read strictly: what could grant something else than it says is refused, with its place."""

from pathlib import Path

import pytest

from omnigraph.core.errors import BadRequest, PolicyDenied
from omnigraph.core.limits import POLICY_GROUPS_MAX, POLICY_RULES_MAX
from omnigraph.policy.gate import PolicyGate
from omnigraph.policy.model import Policy, PolicyKind, RuleScope
from omnigraph.policy.request import AccessRequest, Action, ScopeKey

GOOD = """\
version: 1
kind: graph
groups:
  crew:    [act-mira, act-tomas]
  control: [act-ines]
protected_branches: [main]
rules:
  - id: crew-work
    allow:
      actors: { group: crew }
      actions: [read, export, change]
      branch_scope: unprotected
  - id: control-merge
    allow:
      actors: { group: control }
      actions: [branch_merge, schema_apply]
      target_branch_scope: protected
"""


def test_a_file_becomes_groups_branches_and_rules(tmp_path: Path) -> None:
    path = tmp_path / "atlas.yaml"
    path.write_text(GOOD)

    policy = Policy.read(path)

    assert (policy.name, policy.kind, len(policy.actors)) == ("atlas", PolicyKind.GRAPH, 3)
    assert policy.protected_branches == {"main"}
    work, merge = policy.rules
    assert (work.id, work.group, work.scope_key, work.scope) == (
        "crew-work",
        "crew",
        ScopeKey.BRANCH,
        RuleScope.UNPROTECTED,
    )
    assert work.actions == (Action.READ, Action.EXPORT, Action.CHANGE)
    assert merge.scope_key is ScopeKey.TARGET_BRANCH


WORK = "crew-work"
BROKEN = {
    "unknown key in allow": ("branch_scope:", "branch_scpoe:", WORK, "branch_scpoe"),
    "unknown key in a rule": ("    allow:\n", "    deny: {}\n    allow:\n", WORK, "deny"),
    "unknown group": ("{ group: crew }", "{ group: crw }", WORK, "no group 'crw'"),
    "unknown key in actors": ("{ group: crew }", "{ group: crew, actor: x }", WORK, "'actor'"),
    "duplicate id": ("id: control-merge", "id: crew-work", WORK, "same id"),
    "blank id": ("id: crew-work", "id: ' '", "rule 1", "blank"),
    "missing id": ("id: crew-work", "x: y", "rule 1", "'id' is missing"),
    "both scopes": (
        "branch_scope: unprotected",
        "branch_scope: any\n      target_branch_scope: any",
        WORK,
        "one scope",
    ),
    "scope on invoke_query": (
        "[read, export, change]",
        "[read, invoke_query]",
        WORK,
        "'invoke_query' does not take",
    ),
    "scope on admin": ("[read, export, change]", "[admin]", WORK, "'admin' does not take"),
    "the other scope": (
        "branch_scope: unprotected",
        "target_branch_scope: any",
        WORK,
        "'read' does not take",
    ),
    "unknown scope": ("branch_scope: unprotected", "branch_scope: mine", WORK, "no scope 'mine'"),
    "no actions": ("[read, export, change]", "[]", WORK, "'actions' is empty"),
    "a word for actions": ("[read, export, change]", "read", WORK, "must be a list"),
    "unknown action": ("[read, export, change]", "[raed]", WORK, "no action 'raed'"),
    "mixed actions": (
        "[branch_merge, schema_apply]\n      target_branch_scope: protected",
        "[branch_merge, graph_list]",
        "control-merge",
        "files of their own",
    ),
    "mixed rules": (
        "[branch_merge, schema_apply]\n      target_branch_scope: protected",
        "[graph_list]",
        "control-merge",
        "actions are those of a server",
    ),
    "version": ("version: 1", "version: 2", "version", "2"),
    "version true": ("version: 1", "version: true", "version", "True"),
    "version 1.0": ("version: 1", "version: 1.0", "version", "1.0"),
    "kind": ("kind: graph", "kind: grahp", "kind", "grahp"),
    "the other kind": ("kind: graph", "kind: server", WORK, "actions are those of a graph"),
    "empty group": ("[act-ines]", "[]", "control", "empty"),
    "blank actor": ("[act-ines]", "[' ']", "control", "blank"),
    "a number for an actor": ("[act-ines]", "[5]", "control", "text"),
    "an actor of two lines": ("[act-ines]", '["a\\nb"]', "control", "lines"),
    "blank group": ("control: [act-ines]", "' ': [act-ines]", "group", "blank"),
    "blank branch": ("protected_branches: [main]", "protected_branches: ['']", "protected_branches", "blank"),
    "unknown key at the top": ("protected_branches:", "protected:", "'protected'", "unknown key"),
    "two groups of one name": ("control: [act-ines]", "crew: [act-ines]", "crew", ""),
    "two groups of one name, but for blanks": (
        "control: [act-ines]",
        "'crew ': [act-ines]",
        "two groups",
        "crew",
    ),
    "a list": (GOOD, "[]", "policy", "mapping"),
    "nothing": (GOOD, "", "policy", "mapping"),
    "no YAML": (GOOD, "{", "atlas.yaml", ""),
}


@pytest.mark.case("surfaces", 155)
@pytest.mark.case("surfaces", 541)
@pytest.mark.parametrize("mistake", BROKEN)
def test_a_mistake_is_refused_with_its_place(mistake: str, tmp_path: Path) -> None:
    old, new, place, reason = BROKEN[mistake]
    assert old in GOOD
    path = tmp_path / "atlas.yaml"
    path.write_text(GOOD.replace(old, new, 1))

    with pytest.raises(BadRequest) as refused:
        Policy.read(path)

    assert str(path) in str(refused.value)
    assert place in str(refused.value)
    assert reason in str(refused.value)


def test_a_mistake_is_told_with_its_line() -> None:
    with pytest.raises(BadRequest, match=r"^policy:12: rule 'crew-work': unknown key 'branch_scpoe'"):
        Policy.parse(GOOD.replace("branch_scope", "branch_scpoe"))


HALF = "\\ud83d"
HOSTILE = {
    "half a pair in a group": ("control: [act-ines]", f'"c{HALF}": [act-ines]', 5, "half of a surrogate"),
    "half a pair in an actor": ("[act-ines]", f'["a{HALF}"]', 5, "half of a surrogate"),
    "half a pair in a branch": ("[main]", f'["m{HALF}"]', 6, "half of a surrogate"),
    "half a pair in a rule": ("id: control-merge", f'id: "r{HALF}"', 13, "half of a surrogate"),
    "an actor of the engine": ("[act-ines]", "['omnigraph:recovery']", 5, "an actor of the engine"),
    "a pattern": ("[main]", "[main, '*']", 6, r"branch name '\*' is not allowed"),
    "a name with a blank": ("[main]", "['a b']", 6, "branch name 'a b' is not allowed"),
    "groups": (
        "  control:",
        "".join(f"  g{n}: [x]\n" for n in range(POLICY_GROUPS_MAX - 1)) + "  control:",
        3,
        f"more than {POLICY_GROUPS_MAX} groups",
    ),
    "rules": (
        GOOD,
        "version: 1\ngroups: {g: [x]}\nrules:\n"
        + "".join(
            f"- {{id: r{n}, allow: {{actors: {{group: g}}, actions: [read]}}}}\n"
            for n in range(POLICY_RULES_MAX + 1)
        ),
        3,
        f"more than {POLICY_RULES_MAX} rules",
    ),
}


@pytest.mark.case("surfaces", 762)
@pytest.mark.parametrize("kind", HOSTILE)
def test_what_could_not_be_decided_or_never_apply_is_refused_with_its_line(kind: str, tmp_path: Path) -> None:
    old, new, line, reason = HOSTILE[kind]
    assert old in GOOD
    path = tmp_path / "atlas.yaml"
    path.write_text(GOOD.replace(old, new, 1))

    with pytest.raises(BadRequest, match=f"^{path}:{line}: .*{reason}"):
        Policy.read(path)


@pytest.mark.case("surfaces", 762)
def test_an_actor_that_is_no_text_is_denied() -> None:
    gate = PolicyGate.of(Policy.parse(GOOD))

    with pytest.raises(PolicyDenied, match="in no group"):
        gate.require(AccessRequest("a\ud800b", Action.READ, "main"))


@pytest.mark.case("surfaces", 541)
def test_aliases_that_come_to_too_much_are_refused() -> None:
    lists = "\n".join(f"  g{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 20) if n else 'x'}]" for n in range(8))

    with pytest.raises(BadRequest, match="more than 100000 values, with aliases written out"):
        Policy.parse(f"version: 1\ngroups:\n{lists}\n")


@pytest.mark.case("surfaces", 156)
def test_a_policy_of_a_server_lists_graphs_and_nothing_else() -> None:
    rule = "{id: list, allow: {actors: {group: ops}, actions: [%s]}}"
    text = f"version: 1\nkind: server\ngroups: {{ops: [ann]}}\nrules: [{rule}]\n"

    assert Policy.parse(text % "graph_list").kind is PolicyKind.SERVER
    assert Policy.parse((text % "graph_list").replace("kind: server\n", "")).kind is PolicyKind.SERVER
    with pytest.raises(BadRequest, match="rule 'list'"):
        Policy.parse(text % "read")


@pytest.mark.parametrize("text", ["version: 1", "version: 1\nrules: []", "version: 1\ngroups:\nrules:\n"])
def test_a_file_without_rules_grants_nothing(text: str) -> None:
    policy = Policy.parse(text)

    assert (policy.kind, policy.rules, policy.actors) == (PolicyKind.GRAPH, (), frozenset())
