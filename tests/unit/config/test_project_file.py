"""The project file: paths beside it, the forms of stored queries, and keys that are spelled differently."""

import os
from pathlib import Path

import pytest

from omnigraph.config.configuration import load_configuration
from omnigraph.config.env_file import read_env_file
from omnigraph.config.project_file import ProjectFile, read_project_file
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.errors import BadRequest

WHOLE = """\
project: { name: Atlas }
auth: { env_file: ./.env }
graphs:
  desk:   { uri: graphs/atlas.omni }
  cloud:  { uri: s3://lab-bucket/atlas, policy: { file: policies/atlas.yaml } }
  served: { uri: http://127.0.0.1:8080/graphs/atlas, bearer_token_env: ATLAS_TOKEN }
cli:
  graph: served
  branch: june
  output_format: csv
  table_max_column_width: 60
  table_cell_layout: truncate
  actor: act-mira
server: { graph: cloud, bind: 127.0.0.1:8080 }
query: { roots: [queries, .] }
policy: { file: policies/all.yaml }
queries: queries/
aliases:
  craft:     { command: read,   query: craft.gq, name: get_craft, args: [code], format: kv }
  add-craft: { command: change, query: edits.gq, args: [code, name], branch: june, graph: desk }
"""


def read(folder: Path, text: str) -> tuple[ProjectFile, list[str]]:
    warnings: list[str] = []
    path = folder / "omnigraph.yaml"
    path.write_text(text)
    return read_project_file(path, warnings), warnings


def test_everything_it_may_hold(tmp_path: Path) -> None:
    found, warnings = read(tmp_path, WHOLE)

    assert warnings == []
    assert (found.name, found.env_file) == ("Atlas", tmp_path / ".env")
    assert (found.graph, found.branch, found.actor) == ("served", "june", "act-mira")
    assert (found.server_graph, found.bind) == ("cloud", "127.0.0.1:8080")
    assert found.query_roots == (tmp_path / "queries", tmp_path)
    assert found.queries is not None
    assert found.queries.folder == tmp_path / "queries"
    read_alias, change = found.aliases["craft"], found.aliases["add-craft"]
    assert (read_alias.kind, read_alias.query_name, read_alias.args) == ("read", "get_craft", ("code",))
    assert (change.kind, change.branch, change.graph, change.query_name) == ("mutation", "june", "desk", None)


@pytest.mark.case("surfaces", 927)
@pytest.mark.parametrize("text", ["policy:\n", "policy: {}\n", "policy: { file: }\n"])
@pytest.mark.parametrize("place", ["", "server:\n  ", "graphs:\n  a:\n    uri: a.omni\n    "])
def test_a_policy_without_a_file_is_refused(tmp_path: Path, place: str, text: str) -> None:
    with pytest.raises(BadRequest, match="policy names no file"):
        read(tmp_path, place + text)


@pytest.mark.case("surfaces", 91)
def test_paths_and_graphs_lie_beside_the_file(tmp_path: Path) -> None:
    found, _ = read(tmp_path, WHOLE)

    uris = {name: entry.uri for name, entry in found.graphs.items()}
    assert uris == {
        "desk": str(tmp_path / "graphs/atlas.omni"),
        "cloud": "s3://lab-bucket/atlas",
        "served": "http://127.0.0.1:8080/graphs/atlas",
    }
    assert found.graphs["cloud"].policy_file == tmp_path / "policies/atlas.yaml"
    assert found.graphs["desk"].policy_file is None
    assert found.policy_file == tmp_path / "policies/all.yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targets:\n  desk: { uri: x }", "targets is not a key: it is called graphs"),
        ("target: desk", "target is not a key: it is called graph"),
        ("cli: { target: desk }", "cli.target is not a key: it is called cli.graph"),
        ("server: { target: desk }", "server.target is not a key: it is called server.graph"),
        (
            "aliases:\n  a: { query: q.gq, target: d }",
            "aliases.a.target is not a key: it is called aliases.a.graph",
        ),
        ("graphs:\n  desk: {}", "graphs.desk.uri is missing"),
        ("queries: 7", "queries must be a folder, a list of .gq files, or a mapping"),
        ("queries: { q: {} }", "queries.q.file is missing"),
        ("queries: { q: { file: a.gq, expose: maybe } }", "queries.q.expose must be true or false"),
        ("aliases:\n  a: { query: q.gq, command: drop }", "must be one of read, query, change, mutate"),
    ],
)
def test_a_mistake_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"omnigraph\.yaml") as error:
        read(tmp_path, text)

    assert said in str(error.value)


def test_unknown_keys_warn(tmp_path: Path) -> None:
    _, warnings = read(tmp_path, "colour: red\ncli: { shade: dark }\n")

    assert [text.partition(": ")[2] for text in warnings] == [
        "unknown key 'cli.shade' is ignored",
        "unknown key 'colour' is ignored",
    ]


def test_stored_queries_have_three_forms(tmp_path: Path) -> None:
    files, _ = read(tmp_path, "queries: [a.gq, b.gq]")
    named, _ = read(
        tmp_path, "queries: { q: { file: a.gq, expose: false, tool_name: t }, r: { file: b.gq } }"
    )

    assert files.queries is not None
    assert named.queries is not None
    assert files.queries.files == (tmp_path / "a.gq", tmp_path / "b.gq")
    assert [(query.name, query.is_exposed, query.tool_name) for query in named.queries.named] == [
        ("q", False, "t"),
        ("r", True, None),
    ]


def test_a_graph_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    found, _ = read(tmp_path, WHOLE)

    with pytest.raises(BadRequest, match="no graph 'moon' under graphs: it has desk, cloud, served"):
        found.graph_entry("moon")


@pytest.mark.case("surfaces", 92)
def test_variables_are_added_and_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text(
        "# a\n\nOMNIGRAPH_NEW='from file'\nexport OMNIGRAPH_SET=file\nOMNIGRAPH_EMPTY=file\n"
    )
    (tmp_path / "omnigraph.yaml").write_text("auth: { env_file: .env }\n")
    monkeypatch.setattr(os, "environ", {**os.environ, "OMNIGRAPH_SET": "before", "OMNIGRAPH_EMPTY": ""})

    load_configuration(str(tmp_path))

    names = ("OMNIGRAPH_NEW", "OMNIGRAPH_SET", "OMNIGRAPH_EMPTY")
    assert [os.environ[name] for name in names] == ["from file", "before", ""]


@pytest.mark.case("surfaces", 409)
def test_a_project_sets_nothing_that_belongs_to_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored = ["HTTP_PROXY", "PAGER", "OMNIGRAPH_HOME", "OMNIGRAPH_TOKEN_LAB", "AWS_CONFIG_FILE", "OTHER"]
    given = [*ignored, "OMNIGRAPH_NEW", "AWS_REGION", "ATLAS_TOKEN", "https_proxy"]
    (tmp_path / ".env").write_text("".join(f"{name}=hidden\n" for name in given))
    project = tmp_path / "omnigraph.yaml"
    graphs = ", ".join(
        f"{name}: {{ uri: 'http://127.0.0.1:1/x', bearer_token_env: {name} }}"
        for name in ("ATLAS_TOKEN", "https_proxy", "AWS_CONFIG_FILE")
    )
    project.write_text(f"auth: {{ env_file: .env }}\ngraphs: {{ {graphs} }}\n")
    monkeypatch.setattr(os, "environ", {"OMNIGRAPH_HOME": str(tmp_path / "home")})

    found = load_configuration(str(tmp_path))

    assert os.environ == {
        "OMNIGRAPH_HOME": str(tmp_path / "home"),
        "OMNIGRAPH_NEW": "hidden",
        "AWS_REGION": "hidden",
    }
    assert [warning.split("cannot set ")[1].split(":")[0] for warning in found.warnings] == ignored
    assert "hidden" not in "".join(found.warnings) + repr(found)
    url = ServerUrl.parse("http://127.0.0.1:1/x")
    assert found.token_for(url, "ATLAS_TOKEN") == "hidden"
    assert found.token_for(url, "AWS_CONFIG_FILE") is None
    project.write_text(
        "graphs: { a: { uri: 'http://127.0.0.1:1/x', bearer_token_env: OMNIGRAPH_TOKEN_LAB } }\n"
    )
    with pytest.raises(BadRequest, match="bearer_token_env must not begin with OMNIGRAPH_TOKEN_"):
        load_configuration(str(tmp_path))


def test_without_the_file_of_variables_nothing_is_added(tmp_path: Path) -> None:
    (tmp_path / "omnigraph.yaml").write_text("auth: { env_file: .env }\n")

    assert load_configuration(str(tmp_path)).project is not None


def test_a_line_that_is_no_variable_is_named_without_its_value(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=1\nsecret\n")

    with pytest.raises(BadRequest) as error:
        read_env_file(path)

    assert str(error.value) == f"{path}:2: not KEY=VALUE"


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"cannot read .*nothing\.yaml: No such file"):
        load_configuration(str(tmp_path / "nothing.yaml"))
