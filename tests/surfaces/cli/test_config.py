"""Files of configuration: which graph a command works on, and which settings apply."""

import json
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, MUTATIONS, commits, craft, lines, place_atlas
from tests.support.commands import Outcome, write
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import TOKENS
from tests.support.in_process import invoke
from tests.support.scripted import Answer, serving

READ = """\
query get_craft($code: String) { match { $c: Craft { code: $code } } return { $c.code, $c.name } }
query heavy($kg: F64) { match { $c: Craft  $c.mass_kg > $kg } return { $c.code } order { $c.code } }
"""
PROJECT = f"""\
auth: {{ env_file: .env }}
graphs:
  desk: {{ uri: {GRAPH} }}
  away: {{ uri: "http://127.0.0.1:1/graphs/atlas" }}
cli: {{ graph: desk, actor: act-project }}
query: {{ roots: [queries, .] }}
aliases:
  craft: {{ command: read, query: craft.gq, name: get_craft, args: [code], format: kv }}
  heavy: {{ command: query, query: craft.gq, name: heavy, args: [kg], params: {{ kg: 800.0 }}, graph: desk }}
  add-craft: {{ command: change, query: edits.gq, name: add_craft, args: [code, name] }}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph and a project file, and an empty folder of the operator beside it."""
    folder = tmp_path / "project"
    folder.mkdir()
    place_atlas(folder)
    write(folder, "omnigraph.yaml", PROJECT)
    write(folder, "queries/craft.gq", READ)
    write(folder, "edits.gq", MUTATIONS)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    return folder


def operator(folder: Path, text: str) -> None:
    write(folder.parent, "home/config.yaml", text)


def refused(outcome: Outcome, code: int, *said: str) -> None:
    assert (outcome.code, outcome.stdout) == (code, "")
    for text in said:
        assert text in outcome.stderr


@pytest.mark.case("surfaces", 43)
def test_an_alias_of_the_project_binds_its_arguments(project: Path) -> None:
    by_flag = invoke("query", "--alias", "craft", "VGR-1", cwd=project)
    by_command = invoke("alias", "craft", "VGR-1", cwd=project)

    assert by_flag == by_command
    assert by_flag.stdout.splitlines() == [
        "1 row from branch main via get_craft",
        "row 1",
        "c.code: VGR-1",
        "c.name: vgr-1",
    ]


@pytest.mark.case("surfaces", 44)
def test_an_argument_is_json_or_else_a_text_and_params_win(project: Path) -> None:
    number = invoke("alias", "craft", "29", cwd=project)
    quoted = invoke("alias", "craft", '"29"', cwd=project)
    own = invoke("alias", "heavy", "--format", "csv", cwd=project)
    given = invoke("alias", "heavy", "1", "--params", '{"kg": 900}', "--format", "csv", cwd=project)

    refused(number, 1, "param 'code'", "string")
    assert quoted.stdout.splitlines()[-1] == "(no rows)"
    assert own.stdout.splitlines() == ["c.code", "VGR-1", "VGR-2"]
    assert given.stdout.splitlines() == ["c.code"]


@pytest.mark.case("surfaces", 45)
def test_too_many_arguments_and_unknown_aliases_are_named(project: Path) -> None:
    refused(invoke("alias", "craft", "a", "b", cwd=project), 1, "takes 1 arguments (code), not 2")
    refused(invoke("alias", "moon", cwd=project), 1, "no alias 'moon'; defined: add-craft, craft, heavy")


@pytest.mark.case("surfaces", 46)
def test_an_alias_of_a_mutation_is_run_by_mutate(project: Path) -> None:
    refused(invoke("query", "--alias", "add-craft", "X", "x", cwd=project), 1, "use omnigraph mutate")

    done = invoke("mutate", "--alias", "add-craft", "CAS-1", "Cassini", cwd=project)

    assert done.code == 0
    assert done.stdout.startswith("add_craft on main: 1 node and 0 edges affected")
    assert commits(project)[0]["actor_id"] == "act-project"


@pytest.mark.case("surfaces", 48)
@pytest.mark.parametrize("flag", ["--server", "--store", "--target", "--profile", "--graph"])
def test_an_alias_owns_its_scope(flag: str, project: Path) -> None:
    refused(
        invoke("alias", "craft", "VGR-1", flag, "x", cwd=project), 2, f"{flag} does not apply: an alias has"
    )


@pytest.mark.case("surfaces", 35)
def test_query_files_are_searched_below_the_roots(project: Path) -> None:
    found = invoke("query", "get_craft", "--query", "craft.gq", "--params", '{"code": "GLL-1"}', cwd=project)
    nowhere = invoke("query", "--query", "lost.gq", cwd=project)

    assert found.code == 0
    refused(nowhere, 1, "no query file lost.gq; searched lost.gq, queries/lost.gq")


@pytest.mark.case("surfaces", 400)
def test_the_first_that_names_a_graph_decides(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = project.parent / "other"
    other.mkdir()
    for name in ("by-flag", "by-profile", "by-default"):
        place_atlas(other).rename(other / name)
        extra = write(other, f"{name}.jsonl", lines(craft(name)))
        invoke("load", other / name, "--data", extra, "--mode", "append", cwd=other)
    operator(
        project,
        f"defaults: {{ store: {other}/by-default }}\nprofiles: {{ desk: {{ store: {other}/by-profile }} }}\n",
    )

    def reads(*words: str) -> str:
        found = invoke("export", "--type", "Craft", *words, cwd=project).stdout
        return next((name for name in ("by-flag", "by-profile", "by-default") if name in found), "project")

    monkeypatch.setenv("OMNIGRAPH_PROFILE", "desk")
    assert reads("--store", f"{other}/by-flag") == "by-flag"
    assert reads() == "by-profile"
    monkeypatch.delenv("OMNIGRAPH_PROFILE")
    assert reads("--profile", "desk") == "by-profile"
    assert reads() == "project"
    (project / "omnigraph.yaml").unlink()
    assert reads() == "by-default"


@pytest.mark.case("surfaces", 86)
def test_two_scopes_clash_and_are_named(project: Path) -> None:
    refused(invoke("snapshot", "--store", "a", "--server", "b", cwd=project), 2, "by --store and --server")
    refused(invoke("snapshot", "--target", "desk", "--uri", "b", cwd=project), 2, "by --uri and --target")
    refused(
        invoke("snapshot", "--graph", "a", "--store", "b", cwd=project), 2, "--graph", "--store names a graph"
    )
    refused(invoke("snapshot", "--graph", "a", cwd=project), 2, "--graph", "the project's cli.graph")


@pytest.mark.case("surfaces", 401)
def test_a_graph_of_the_project_is_named_by_target(project: Path) -> None:
    elsewhere = project.parent

    found = invoke("snapshot", "--target", "desk", "--config", project, cwd=elsewhere)
    unknown = invoke("snapshot", "--target", "moon", "--config", project / "omnigraph.yaml", cwd=elsewhere)
    served = invoke("optimize", "--target", "away", cwd=project)

    assert found.code == 0
    refused(unknown, 1, "has no graph 'moon' under graphs: it has desk, away")
    refused(served, 1, "is behind a server, and this command works on the storage of a graph")


@pytest.mark.case("surfaces", 89)
def test_the_author_is_given_or_configured(project: Path) -> None:
    operator(project, "operator: { actor: act-operator }\n")
    mutate = ["mutate", "add_craft", "--query", "edits.gq", "--params"]

    invoke(*mutate, '{"code": "A", "name": "a"}', cwd=project)
    invoke(*mutate, '{"code": "B", "name": "b"}', "--as", "act-flag", cwd=project)
    write(project, "omnigraph.yaml", f"graphs: {{ desk: {{ uri: {GRAPH} }} }}\ncli: {{ graph: desk }}\n")
    invoke(*mutate, '{"code": "C", "name": "c"}', cwd=project)

    authors = [commit["actor_id"] for commit in commits(project)[:3]]
    assert authors == ["act-operator", "act-flag", "act-project"]
    served = invoke(*mutate, "{}", "--as", "x", "--uri", "http://127.0.0.1:1", cwd=project)
    refused(served, 2, "--as does not apply to a served graph")


@pytest.mark.case("surfaces", 402)
def test_formats_and_layouts_are_configured(project: Path) -> None:
    read = ["query", "get_craft", "--query", "craft.gq", "--params", '{"code": "VGR-1"}']
    operator(project, "defaults: { output: csv, table_max_column_width: 4, table_cell_layout: wrap }\n")

    by_operator = invoke(*read, cwd=project).stdout
    table = invoke(*read, "--format", "table", cwd=project).stdout
    write(project, "omnigraph.yaml", PROJECT.replace("actor:", "output_format: json, actor:"))
    by_project = invoke(*read, cwd=project).stdout

    assert by_operator.splitlines() == ["c.code,c.name", "VGR-1,vgr-1"]
    assert table.splitlines()[1:] == ["c.co | c.na", "de   | me", "-----+-----", "VGR- | vgr-", "1    | 1"]
    assert json.loads(by_project)["row_count"] == 1


@pytest.mark.case("surfaces", 403)
def test_the_branch_is_given_or_the_projects(project: Path) -> None:
    invoke("branch", "create", "june", cwd=project)
    write(project, "omnigraph.yaml", PROJECT.replace("actor:", "branch: june, actor:"))
    invoke("mutate", "--alias", "add-craft", "CAS-1", "Cassini", cwd=project)

    assert "branch june" in invoke("query", "--alias", "craft", "CAS-1", cwd=project).stdout
    assert (
        "branch main" in invoke("query", "--alias", "craft", "CAS-1", "--branch", "main", cwd=project).stdout
    )
    assert "(no rows)" in invoke("query", "--alias", "craft", "CAS-1", "--branch", "main", cwd=project).stdout


@pytest.mark.case("surfaces", 93)
@pytest.mark.case("surfaces", 94)
def test_a_wrong_operator_file_is_named_and_an_unknown_key_warns(project: Path) -> None:
    operator(project, "colour: red\n")
    warned = invoke("snapshot", cwd=project)
    operator(project, "operator: {\n")
    malformed = invoke("snapshot", cwd=project)
    operator(project, "defaults: { server: a, store: b }\n")
    both = invoke("snapshot", cwd=project)

    assert warned.code == 0
    assert warned.stderr.count("unknown key 'colour' is ignored") == 1
    refused(malformed, 1, "config.yaml:")
    refused(both, 1, "defaults.store cannot be combined with defaults.server")


@pytest.mark.case("surfaces", 95)
@pytest.mark.case("surfaces", 97)
def test_a_token_is_kept_for_its_owner_alone_and_forgotten(project: Path) -> None:
    operator(project, "servers: { lab: { url: 'http://127.0.0.1:1' } }\n")
    credentials = project.parent / "home/credentials"

    kept = invoke("login", "lab", cwd=project, stdin="tok-0123456789\n")

    assert kept.code == 0
    assert "tok-" not in kept.stdout + kept.stderr
    assert credentials.read_text() == "[lab]\ntoken = tok-0123456789\n"
    assert credentials.stat().st_mode & 0o777 == 0o600
    credentials.chmod(0o644)
    refused(invoke("snapshot", "--server", "lab", "--graph", "a", cwd=project), 1, f"chmod 600 {credentials}")
    credentials.chmod(0o600)
    for said in ("removed the token of lab in", "there is no token of lab in"):
        assert invoke("logout", "lab", cwd=project) == Outcome(0, f"{said} {credentials}\n", "")
    assert credentials.read_text() == ""


def test_login_warns_of_a_server_that_is_not_declared_and_takes_no_empty_token(project: Path) -> None:
    undeclared = invoke("login", "moon", "--token", "abc", "--json", cwd=project)

    assert json.loads(undeclared.stdout)["declared"] is False
    assert "warning: no server 'moon'" in undeclared.stderr
    refused(invoke("login", "moon", cwd=project, stdin="\n"), 1, "a token is one word")
    refused(invoke("login", "a b", "--token", "x", cwd=project), 1, "not the name of a server")


@pytest.mark.case("surfaces", 98)
def test_a_broken_profile_is_listed_and_not_shown(project: Path) -> None:
    operator(
        project,
        "servers: { lab: { url: 'https://lab.example' } }\n"
        "profiles: { fine: { server: lab, default_graph: atlas }, broken: { server: lab, store: x } }\n",
    )

    listed = json.loads(invoke("profile", "list", "--json", cwd=project).stdout)
    shown = json.loads(invoke("profile", "show", "fine", "--json", cwd=project).stdout)

    head = invoke("profile", "list", cwd=project).stdout.splitlines()[0]
    assert head.split() == ["profile", "binds", "graph"]
    assert [(row["name"], row["valid"]) for row in listed] == [("fine", True), ("broken", False)]
    assert (shown["scope_kind"], shown["endpoint"]) == ("server", "https://lab.example/graphs/atlas")
    refused(invoke("profile", "show", "broken", cwd=project), 1, "it binds server and store")
    refused(invoke("profile", "show", "moon", cwd=project), 1, "no profile 'moon'", "fine, broken")


@pytest.mark.case("surfaces", 404)
def test_the_configuration_is_shown_with_its_sources_and_checked(project: Path) -> None:
    operator(project, "operator: { actor: act-operator }\ndefaults: { output: kv }\n")

    shown = json.loads(invoke("config", "show", "--json", cwd=project).stdout)["settings"]
    table = invoke("config", "show", cwd=project)
    checked = invoke("config", "check", cwd=project)
    operator(project, "profiles: { broken: {} }\n")
    broken = invoke("config", "check", "--json", cwd=project)

    by_name = {setting["name"]: (setting["value"], Path(setting["source"]).name) for setting in shown}
    assert by_name["actor"] == ("act-project", "omnigraph.yaml")
    assert by_name["output"] == ("kv", "config.yaml")
    assert by_name["graphs.desk"] == (GRAPH, "omnigraph.yaml")
    assert checked.code == 0
    assert table.stdout.splitlines()[0].split() == ["setting", "value", "source"]
    assert (broken.code, json.loads(broken.stdout)["ok"]) == (1, False)


def test_what_is_set_of_graphs_queries_and_profiles_is_shown_without_tokens(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = "{ uri: far, bearer_token_env: ATLAS_TOKEN, policy: { file: far.yaml } }"
    named = "{ plain: { file: a.gq }, hidden: { file: b.gq, expose: false, tool_name: find } }"
    monkeypatch.setenv("ATLAS_TOKEN", TOKENS["act-mira"])
    operator(
        project,
        "servers: { lab: { url: 'http://lab' } }\nprofiles: { x: { server: lab, default_graph: big } }\n",
    )

    def shown(queries: str) -> dict[str, str]:
        write(project, "omnigraph.yaml", f"graphs: {{ far: {entry} }}\nqueries: {queries}\n")
        text = invoke("config", "show", cwd=project).stdout
        found = json.loads(invoke("config", "show", "--json", cwd=project).stdout)["settings"]
        assert all(setting["name"] in text and setting["value"] in text for setting in found)
        assert TOKENS["act-mira"] not in text
        return {setting["name"]: setting["value"] for setting in found}

    mapped = shown(named)

    assert mapped == {
        "servers.lab": "http://lab",
        "profiles.x": "server lab",
        "profiles.x.default_graph": "big",
        "graphs.far": "far",
        "graphs.far.bearer_token_env": "ATLAS_TOKEN",
        "graphs.far.policy.file": "far.yaml",
        "queries.plain.file": "a.gq",
        "queries.hidden.file": "b.gq",
        "queries.hidden.expose": "false",
        "queries.hidden.tool_name": "find",
    }
    assert shown("stored/")["queries"] == "stored"
    assert shown("[a.gq, b.gq]")["queries"] == "b.gq"  # the second of two rows


def test_a_profile_that_names_a_graph_is_told_the_key(project: Path) -> None:
    operator(project, "profiles: { remote: { server: 'http://lab', graph: big } }\n")

    told = invoke("config", "check", cwd=project).stderr

    assert (
        "unknown key 'profiles.remote.graph' is ignored; did you mean 'profiles.remote.default_graph'?"
        in told
    )


def test_a_query_that_is_a_name_with_a_path_is_told_the_keys(project: Path) -> None:
    write(project, "omnigraph.yaml", "queries:\n  heavy: a.gq\n")

    refused(
        invoke("config", "show", cwd=project),
        1,
        "omnigraph.yaml:2: queries.heavy must be a mapping with the key file, and if wanted expose and",
    )


@pytest.mark.case("surfaces", 42)
def test_a_stored_query_needs_a_server(project: Path) -> None:
    refused(invoke("query", "overdue", "--store", GRAPH, cwd=project), 1, "stored queries need a server")


@pytest.mark.case("surfaces", 405)
def test_a_server_that_is_not_there_or_not_known_is_named(project: Path) -> None:
    refused(
        invoke("snapshot", "--uri", "http://127.0.0.1:1", cwd=project), 1, "no server answers at http://127.0"
    )
    refused(invoke("snapshot", "--server", "moon", cwd=project), 1, "no server 'moon' under servers:")
    refused(invoke("graphs", "list", cwd=project), 1, "no server given: name it with --server or --profile")
    refused(invoke("graphs", "list", "--graph", "a", cwd=project), 2, "--graph does not apply")
    refused(
        invoke("snapshot", "--server", "http://127.0.0.1:1", "--graph", "../x", cwd=project),
        1,
        "id of a graph",
    )


@pytest.mark.case("surfaces", 90)
def test_a_served_graph_of_the_project_is_asked_with_its_token(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PROJECT.replace("graph: desk, actor: act-project", "graph: served")
    monkeypatch.setenv("ATLAS_TOKEN", TOKENS["act-mira"])
    with serving_app(settings_for(project / GRAPH, tokens=TOKENS)) as client:
        entry = f'  served: {{ uri: "{client.base_url}", bearer_token_env: ATLAS_TOKEN }}\n'
        write(project, "omnigraph.yaml", text.replace("graphs:\n", f"graphs:\n{entry}"))
        answered = invoke("query", "--alias", "craft", "VGR-1", cwd=project)
        monkeypatch.setenv("ATLAS_TOKEN", "another-token-0123456789")
        unknown = invoke("query", "--alias", "craft", "VGR-1", cwd=project)

    assert answered.code == 0, answered
    assert "c.name: vgr-1" in answered.stdout
    refused(unknown, 1, "token")


BRANCHES: Answer = (200, {"branches": ["main"]}, {})


def listed(*names: str) -> Answer:
    return (200, {"graphs": [{"graph_id": name, "uri": "x"} for name in names]}, {})


def test_of_a_server_the_only_graph_is_used_listed_or_not(project: Path) -> None:
    refusal: Answer = (403, {"error": "no", "code": "forbidden"}, {})
    for answer in (listed("big"), refusal):
        with serving(answer, BRANCHES) as script:
            outcome = invoke("branch", "list", "--server", script.url, cwd=project)

        assert (outcome.code, outcome.stdout) == (0, "main\n"), outcome
        assert script.asked == ["GET /graphs", "GET /branches"]


def test_of_several_graphs_of_a_server_one_is_named(project: Path) -> None:
    with serving(listed("big", "small")) as script:
        outcome = invoke("branch", "list", "--server", script.url, cwd=project)

    refused(outcome, 1, f"{script.url} has several graphs: pick one with --graph; it has big, small")


@pytest.mark.parametrize("words", [["--server", "lab"], ["--server", "{}"], ["--profile", "remote"], []])
def test_the_default_graph_counts_where_its_server_is_named(words: list[str], project: Path) -> None:
    (project / "omnigraph.yaml").unlink()
    with serving(BRANCHES) as script:
        operator(
            project,
            f"servers: {{ lab: {{ url: '{script.url}' }} }}\n"
            "defaults: { server: lab, default_graph: big }\n"
            "profiles: { remote: { server: lab } }\n",
        )
        outcome = invoke("branch", "list", *(word.format(script.url) for word in words), cwd=project)

    assert (outcome.code, outcome.stdout) == (0, "main\n"), outcome
    assert script.asked == ["GET /graphs/big/branches"]


@pytest.mark.parametrize("default", ["lab", "nowhere"])
def test_the_default_graph_of_one_server_is_none_of_another(default: str, project: Path) -> None:
    with serving(listed("big"), BRANCHES) as script:
        operator(
            project,
            "servers: { lab: { url: 'http://127.0.0.1:1' } }\n"
            f"defaults: {{ server: {default}, default_graph: big }}\n",
        )
        outcome = invoke("branch", "list", "--server", script.url, cwd=project)

    assert outcome.code == 0, outcome
    assert script.asked == ["GET /graphs", "GET /branches"]
