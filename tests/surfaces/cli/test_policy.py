"""Policies on the command line: the tools for files, and `--policy` on commands that open a graph."""

from pathlib import Path

import click
import pytest

from omnigraph.cli.completion import names_for
from omnigraph.cli.main import COMMANDS, omnigraph
from omnigraph.cli.options import GraphCommand
from omnigraph.client.connect import connect
from omnigraph.core.errors import BadRequest, PolicyDenied
from omnigraph.graph.opening import open as open_graph
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import Outcome, write
from tests.support.gates import policy_text
from tests.support.in_process import invoke

POLICY = """\
version: 1
groups: { crew: [act-mira], control: [act-ines] }
protected_branches: [main]
rules:
  - id: b-work
    allow: { actors: { group: crew }, actions: [read, change], branch_scope: unprotected }
  - id: a-work
    allow: { actors: { group: crew }, actions: [read], branch_scope: unprotected }
  - id: merge
    allow:
      actors: { group: control }
      actions: [branch_merge, branch_create]
      target_branch_scope: any
"""
CASES = """\
version: 1
cases:
  - { id: reads june, actor: act-mira, action: read, branch: june, expect: allow }
  - { id: not main, actor: act-mira, action: change, branch: " main ", expect: deny }
  - { id: merges, actor: act-ines, action: branch_merge, branch: june, target_branch: main, expect: allow }
"""
TITLES = "query q() { match { $m: Mission } return { $m.title } }"
ADD = 'query q() { insert Mission { title: "policy" } }'
# Commands that open the storage of a graph for its data; each is refused by a policy that grants nothing.
GUARDED: dict[str, tuple[str, ...]] = {
    "query": ("-e", TITLES, "--store", GRAPH),
    "explain": ("-e", TITLES, "--store", GRAPH),
    "mutate": ("-e", ADD, "--store", GRAPH, "--as", "act-mira"),
    "load": (GRAPH, "--data", "missing.jsonl", "--mode", "append"),
    "import": (GRAPH, "--data", "missing.jsonl"),
    "export": (GRAPH,),
    "embed": (GRAPH,),
    "branch list": (GRAPH,),
    "branch create": (GRAPH, "new"),
    "branch delete": (GRAPH, "june"),
    "branch merge": (GRAPH, "june"),
    "branch upgrade": (GRAPH, "june"),
    "branch diff": (GRAPH, "june"),
    "diff": (GRAPH, "june"),
    "commit list": (GRAPH,),
    "commit show": (GRAPH, "x"),
    "commit changes": (GRAPH, "x"),
    "changes poll": (GRAPH,),
    "changes baseline": (GRAPH, "--out", "baseline.jsonl"),
    "snapshot": (GRAPH,),
    "describe": ("Mission", GRAPH),
    "schema show": (GRAPH,),
    "schema plan": (GRAPH, "--schema", "atlas.pg"),
    "schema apply": (GRAPH, "--schema", "atlas.pg"),
    "lint": (GRAPH, "--query", "mutations.gq"),
    "codegen": ("python", GRAPH),
    "queries validate": (GRAPH, "--queries", "mutations.gq"),
    "shell": (GRAPH,),
    "blob get": ("node", "Mission", "x", "title", "--store", GRAPH),
    "blob stat": ("node", "Mission", "x", "title", "--store", GRAPH),
}
# Commands on the storage of a graph for whoever holds it; no policy decides about these.
OF_THE_STORAGE = {
    *("init", "optimize", "cleanup", "repair", "index", "recovery", "status", "verify", "quarantine"),
    *("clone", "check-copy", "serve"),
}
NO_GRAPH = {"queries list"}  # takes the flag to say why it does not apply
OF_FILES = {"policy validate", "policy test", "policy explain", "policy compile"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("policy")
    place_atlas(made)
    write(made, "mutations.gq", ADD)
    write(made, "policy.yaml", POLICY)
    write(made, "nothing.yaml", policy_text())
    assert invoke("branch", "create", "june", "--store", GRAPH, cwd=made).code == 0
    return made


def run(folder: Path, *words: str, code: int = 0) -> Outcome:
    outcome = invoke(*words, cwd=folder)
    assert outcome.code == code, outcome
    return outcome


def commands() -> dict[str, click.Command]:
    """Return all commands by their words, but for old spellings."""
    found: dict[str, click.Command] = {}
    context = click.Context(omnigraph)
    for name in COMMANDS:
        command = omnigraph.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found |= {
                f"{name} {inner}": member for inner, member in command.commands.items() if not member.hidden
            }
        else:
            found[name] = command
    return found


@pytest.mark.case("surfaces", 543)
@pytest.mark.case("surfaces", 226)
def test_every_command_asks_or_is_known_not_to(folder: Path) -> None:
    takes = {
        name
        for name, command in commands().items()
        if any("--policy" in parameter.opts for parameter in command.params)
    }
    assert takes - NO_GRAPH - OF_FILES - {"schema get"} == GUARDED.keys()
    before = sorted(path.name for path in folder.rglob("*"))

    for name, words in GUARDED.items():
        outcome = invoke(*name.split(), *words, "--policy", "nothing.yaml", cwd=folder)
        assert outcome.code == 1, (name, outcome)
        assert "policy denied action" in outcome.stderr, (name, outcome)

    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.case("surfaces", 804)
def test_every_other_command_on_storage_is_one_for_whoever_holds_it() -> None:
    takes_storage = {
        name.partition(" ")[0]
        for name, command in commands().items()
        if any("--store" in parameter.opts for parameter in command.params)
        and not any("--policy" in parameter.opts for parameter in command.params)
    }
    assert takes_storage <= OF_THE_STORAGE


@pytest.mark.case("surfaces", 804)
def test_a_graph_with_a_policy_shows_its_types_to_those_who_may_read_them(
    folder: Path, tmp_path: Path
) -> None:
    write(
        tmp_path,
        "omnigraph.yaml",
        f"graphs: {{ guarded: {{ uri: {folder / GRAPH}, policy: {{ file: {folder / 'nothing.yaml'} }} }} }}\n"
        "cli: { actor: act-mira }\n",
    )
    for words in (("schema", "show"), ("codegen", "python"), ("lint", "--query", "q.gq")):
        write(tmp_path, "q.gq", TITLES)
        denied = run(tmp_path, *words, "--target", "guarded", code=1)
        assert "policy denied action 'read'" in denied.stderr, words
        assert "Mission" not in denied.stdout
    allowed = write(tmp_path, "open.yaml", policy_text("read", actors="act-mira"))
    told = run(tmp_path, "codegen", "python", "--target", "guarded", "--policy", str(allowed))
    assert "class Mission" in told.stdout


@pytest.mark.case("surfaces", 804)
def test_nothing_is_completed_beside_a_policy(folder: Path) -> None:
    graph = str(folder / GRAPH)

    assert names_for(["query", "--store", graph, "--branch"], "j")
    for policy in (("--policy", "nothing.yaml"), ("--policy=nothing.yaml",)):
        assert names_for(["query", "--store", graph, *policy, "--branch"], "j") is None


@pytest.mark.case("surfaces", 550)
def test_maintenance_and_served_graphs_take_no_policy(folder: Path) -> None:
    maintenance = [
        name
        for name, command in commands().items()
        if isinstance(command, GraphCommand) and not any("--policy" in p.opts for p in command.params)
    ]
    assert {"optimize", "cleanup", "repair", "verify", "status", "init", "recovery list", "clone"} <= {
        *maintenance
    }
    for name in (
        "optimize",
        "cleanup",
        "repair",
        "verify",
        "status",
        "recovery list",
        "index ensure",
        "serve",
    ):
        refused = run(folder, *name.split(), GRAPH, "--policy", "policy.yaml", code=2)
        assert "--policy" in refused.stderr, name
    served = run(folder, "snapshot", "http://127.0.0.1:1/graphs/g", "--policy", "policy.yaml", code=2)
    assert "its server has its own policy" in served.stderr
    run(folder, "queries", "list", "--queries", "mutations.gq", "--policy", "policy.yaml", code=2)


@pytest.mark.case("surfaces", 550)
def test_a_policy_decides_for_the_actor_of_the_flag_and_of_the_configuration(
    folder: Path, tmp_path: Path
) -> None:
    with_policy = ("--store", str(folder / GRAPH), "--policy", str(folder / "policy.yaml"))

    wrong = run(folder, "mutate", "-e", ADD, *with_policy, "--as", "act-mira", code=1)
    assert "policy denied action 'change' on branch 'main' for actor 'act-mira'" in wrong.stderr
    run(folder, "mutate", "-e", ADD, *with_policy, "--as", "act-mira", "--branch", "june")
    assert (
        "names no actor"
        in run(folder, "query", "-e", TITLES, *with_policy, "--branch", "june", code=1).stderr
    )
    write(tmp_path, "omnigraph.yaml", "cli: { actor: act-mira }\n")
    assert "policy" in run(tmp_path, "query", "-e", TITLES, *with_policy, "--branch", "june").stdout
    run(tmp_path, "query", "-e", TITLES, *with_policy, code=1)
    run(folder, "snapshot", "--store", GRAPH, "--policy", "missing.yaml", code=1)


@pytest.mark.case("surfaces", 550)
def test_the_policy_of_a_projects_graph_goes_with_its_name(folder: Path, tmp_path: Path) -> None:
    graph, policy = folder / GRAPH, folder / "policy.yaml"
    write(
        tmp_path,
        "omnigraph.yaml",
        f"cli: {{ graph: guarded, actor: act-mira }}\n"
        f"graphs: {{ guarded: {{ uri: {graph}, policy: {{ file: {policy} }} }} }}\n"
        f"aliases: {{ titles: {{ command: read, query: titles.gq, graph: guarded }} }}\n",
    )
    write(tmp_path, "titles.gq", TITLES)

    for named in ((), ("--target", "guarded")):
        refused = run(tmp_path, "query", "-e", TITLES, *named, code=1)
        assert "policy denied action 'read' on branch 'main'" in refused.stderr
        run(tmp_path, "query", "-e", TITLES, *named, "--branch", "june")
    assert "policy denied" in run(tmp_path, "alias", "titles", code=1).stderr
    run(tmp_path, "query", "-e", TITLES, "--store", str(graph))
    run(tmp_path, "optimize", "--target", "guarded")
    open_policy = write(tmp_path, "open.yaml", policy_text("read", actors="act-mira"))
    run(tmp_path, "query", "-e", TITLES, "--policy", str(open_policy))


@pytest.mark.case("surfaces", 620)
@pytest.mark.case("surfaces", 694)
def test_the_policy_of_a_project_is_that_of_its_graphs_wherever_they_are_opened(
    folder: Path, tmp_path: Path
) -> None:
    own = write(tmp_path, "own.yaml", policy_text("read", actors="act-mira"))
    rest = f"cli: {{ graph: shared, actor: act-mira }}\npolicy: {{ file: {folder / 'policy.yaml'} }}\n"
    graphs = (
        f"graphs:\n  shared: {{ uri: {folder / GRAPH} }}\n"
        f"  own: {{ uri: {folder / GRAPH}, policy: {{ file: {own} }} }}\n"
    )
    write(tmp_path, "omnigraph.yaml", graphs + rest)

    for named in ((), ("--target", "shared")):
        refused = run(tmp_path, "query", "-e", TITLES, *named, code=1)
        assert "policy denied action 'read' on branch 'main'" in refused.stderr
        run(tmp_path, "query", "-e", TITLES, *named, "--branch", "june")
    with connect(config=tmp_path) as graph, pytest.raises(PolicyDenied):
        graph.query(TITLES)
    run(tmp_path, "query", "-e", TITLES, "--target", "own")
    run(tmp_path, "query", "-e", TITLES, "--store", str(folder / GRAPH))

    server = write(tmp_path, "server.yaml", policy_text("graph_list", actors="act-mira"))
    write(tmp_path, "omnigraph.yaml", graphs + rest.replace(str(folder / "policy.yaml"), str(server)))
    run(tmp_path, "query", "-e", TITLES)
    with connect(config=tmp_path) as graph:
        assert graph.query(TITLES).rows

    missing = graphs + rest.replace(str(folder / "policy.yaml"), "missing.yaml")
    write(tmp_path, "omnigraph.yaml", missing)
    assert "missing.yaml" in run(tmp_path, "query", "-e", TITLES, code=1).stderr
    with pytest.raises(BadRequest, match=r"missing\.yaml"):
        connect(config=tmp_path)
    run(tmp_path, "optimize", "--target", "shared")


def test_a_policy_file_is_checked(folder: Path, tmp_path: Path) -> None:
    assert (
        run(folder, "policy", "validate", "--policy", "policy.yaml").stdout
        == "policy valid: policy [2 actors]\n"
    )
    broken = write(tmp_path, "broken.yaml", POLICY.replace("branch_scope", "branch_scpoe", 1))
    refused = run(folder, "policy", "validate", "--policy", str(broken), code=1)
    assert f"{broken}:6: rule 'b-work': unknown key 'branch_scpoe'" in refused.stderr
    assert "--cluster" in run(folder, "policy", "validate", "--cluster", "c", code=2).stderr
    run(folder, "policy", "validate", "--policy", "policy.yaml", "--json", code=2)


@pytest.mark.case("surfaces", 162)
def test_a_policy_is_tested_by_cases(folder: Path, tmp_path: Path) -> None:
    good = write(tmp_path, "good.yaml", CASES)
    passed = run(folder, "policy", "test", "--policy", "policy.yaml", "--tests", str(good))
    assert passed.stdout == "policy tests passed: 3 cases\n"

    wrong = write(tmp_path, "wrong.yaml", CASES.replace("expect: deny", "expect: allow"))
    failed = run(folder, "policy", "test", "--policy", "policy.yaml", "--tests", str(wrong), code=1)
    assert failed.stdout.startswith("not main: expected allow, decided deny: policy denied action 'change'")

    for old, new, reason in (
        ("id: not main", "id: reads june", "same id"),
        ("id: not main", "id: ' '", "blank"),
        ("expect: deny", "expect: no", "'no' is not one of allow, deny"),
        ("action: change", "action: chnage", "chnage"),
        ("branch: june", "brnch: june", "unknown key 'brnch'"),
        ("version: 1", "version: 2", "version"),
    ):
        bad = write(tmp_path, "bad.yaml", CASES.replace(old, new, 1))
        refused = run(folder, "policy", "test", "--policy", "policy.yaml", "--tests", str(bad), code=1)
        assert reason in refused.stderr, (new, refused)


@pytest.mark.case("surfaces", 762)
def test_a_name_of_several_lines_forges_no_answer(folder: Path) -> None:
    words = [
        "--actor",
        "a\nmatched_rule: x",
        "--branch",
        "x\nmatched_rule: fake",
        "--target-branch",
        "y\x0bz",
    ]

    told = run(folder, "policy", "explain", "--policy", "policy.yaml", "--action", "read", *words).stdout

    answers = [line.partition(":")[0] for line in told.splitlines()]
    assert answers == ["decision", "actor", "action", "branch", "target_branch", "message"]
    assert told.splitlines()[1] == r"actor: a\nmatched_rule: x"


@pytest.mark.case("surfaces", 762)
def test_half_a_surrogate_pair_in_a_policy_is_told_by_every_command(folder: Path, tmp_path: Path) -> None:
    bad = write(tmp_path, "bad.yaml", 'version: 1\ngroups:\n  "cr\\ud83dew": [a]\n')
    request = ["--actor", "a", "--action", "read"]

    for words in (["validate"], ["compile"], ["explain", *request]):
        refused = run(folder, "policy", *words, "--policy", str(bad), code=1)
        assert f"{bad}:3: " in refused.stderr
        assert "half of a surrogate pair" in refused.stderr
    with pytest.raises(BadRequest, match="half of a surrogate pair"):
        open_graph(folder / GRAPH, policy=bad)


@pytest.mark.case("surfaces", 163)
@pytest.mark.case("surfaces", 553)
def test_a_policy_explains_what_it_decides(folder: Path, tmp_path: Path) -> None:
    def explained(*words: str) -> dict[str, str]:
        told = run(folder, "policy", "explain", "--policy", "policy.yaml", *words).stdout
        return dict(line.split(": ", 1) for line in told.splitlines())

    allowed = explained("--actor", "act-mira", "--action", "read", "--branch", " june ")
    assert allowed == {
        "decision": "allow",
        "actor": "act-mira",
        "action": "read",
        "branch": "june",
        "matched_rule": "a-work",
        "message": "rule 'a-work' allows it",
    }
    denied = explained(
        "--actor", "act-mira", "--action", "branch_merge", "--branch", "june", "--target-branch", "main"
    )
    assert (denied["decision"], denied["target_branch"]) == ("deny", "main")
    assert "matched_rule" not in denied
    assert "in no group" in explained("--actor", "eve", "--action", "read")["message"]
    assert "names no actor" in explained("--action", "read")["message"]
    run(folder, "policy", "explain", "--policy", "policy.yaml", "--action", "raed", code=2)
    assert "--policy" in run(tmp_path, "policy", "explain", "--action", "read", code=1).stderr


def test_the_tools_find_the_policies_of_a_project(folder: Path, tmp_path: Path) -> None:
    write(
        tmp_path,
        "omnigraph.yaml",
        f"graphs: {{ a: {{ uri: a.omni, policy: {{ file: own.yaml }} }}, b: {{ uri: b.omni }} }}\n"
        f"policy: {{ file: {folder / 'policy.yaml'} }}\n",
    )
    write(tmp_path, "own.yaml", policy_text("read"))

    assert run(tmp_path, "policy", "validate").stdout.startswith("policy valid: policy ")
    assert run(tmp_path, "policy", "validate", "--target", "b").stdout.startswith("policy valid: policy ")
    assert run(tmp_path, "policy", "validate", "--target", "a").stdout.startswith("policy valid: own ")
    run(tmp_path, "policy", "validate", "--target", "a", "--policy", "own.yaml", code=2)


@pytest.mark.case("surfaces", 552)
def test_a_policy_is_printed_as_cedar(folder: Path) -> None:
    text = run(folder, "policy", "compile", "--policy", "policy.yaml", "--graph", "atlas").stdout

    assert text.count("permit (") == 5
    assert 'Omnigraph::Graph::"atlas"' in text
    assert 'Omnigraph::Graph::"default"' in run(folder, "policy", "compile", "--policy", "policy.yaml").stdout
    run(folder, "policy", "compile", "--policy", "policy.yaml", "--graph", "graphs", code=1)
