"""The operator file: what it may hold, and errors that name file, line and key."""

from pathlib import Path

import pytest

from omnigraph.config.operator_file import OperatorFile, read_operator_file
from omnigraph.core.errors import BadRequest

WHOLE = """\
operator: { actor: act-mira }
servers:
  lab: { url: https://graph.lab.example }
clusters:
  fleet: { root: s3://lab-bucket/clusters/fleet }
defaults:
  output: kv
  table_max_column_width: 40
  table_cell_layout: wrap
  server: lab
  default_graph: atlas
profiles:
  lab-atlas: { server: lab, default_graph: atlas }
  desk: { store: ./atlas.omni }
aliases:
  overdue:
    server: lab
    graph: atlas
    query: overdue_missions
    args: [since]
    params: { limit: 20, from: 2026-01-31 }
    format: kv
"""


def read(folder: Path, text: str) -> tuple[OperatorFile, list[str]]:
    warnings: list[str] = []
    path = folder / "config.yaml"
    path.write_text(text)
    return read_operator_file(path, warnings), warnings


def test_everything_it_may_hold(tmp_path: Path) -> None:
    found, warnings = read(tmp_path, WHOLE)

    assert warnings == []
    assert (found.actor, found.server, found.store, found.default_graph) == ("act-mira", "lab", None, "atlas")
    assert (found.reads.output, found.reads.table_max_column_width) == ("kv", 40)
    assert found.reads.table_cell_layout == "wrap"
    assert {name: str(url) for name, url in found.servers.items()} == {"lab": "https://graph.lab.example"}
    assert found.clusters == {"fleet": "s3://lab-bucket/clusters/fleet"}
    assert found.profiles["desk"].binding == ("store", "./atlas.omni")
    alias = found.aliases["overdue"]
    assert (alias.query, alias.args, alias.format) == ("overdue_missions", ("since",), "kv")
    assert alias.params == {"limit": 20, "from": "2026-01-31"}


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    found, warnings = read(tmp_path, "# nothing yet\n")

    assert (found.actor, dict(found.servers), warnings) == (None, {}, [])


def test_each_unknown_key_is_one_warning_with_its_line(tmp_path: Path) -> None:
    _, warnings = read(tmp_path, "colour: red\nservers:\n  lab:\n    url: http://x\n    token: secret\n")

    file = tmp_path / "config.yaml"
    assert warnings == [
        f"{file}:5: unknown key 'servers.lab.token' is ignored",
        f"{file}:1: unknown key 'colour' is ignored",
    ]
    assert "secret" not in "".join(warnings)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("operator: mira", None, "operator must be a mapping"),
        ("operator:\n  actor: 7", 2, "operator.actor must be a text, not a whole number: quote it"),
        ("operator:\n  actor: ' '", 2, "operator.actor must be a text"),
        ("servers:\n  lab: {}", None, "servers.lab.url is missing"),
        ("servers:\n  lab: { url: ftp://x }", 2, "servers.lab.url is wrong: 'ftp://x' is not the address"),
        ("servers:\n  'a b': { url: http://x }", 2, "use letters, digits, _ and -"),
        (
            "servers:\n  lab-a: { url: http://x }\n  lab_a: { url: http://y }",
            3,
            "belongs to 'lab_a', whose token would be that of 'lab-a'",
        ),
        ("clusters:\n  fleet: {}", None, "clusters.fleet.root is missing"),
        ("defaults:\n  output: xml", 2, "defaults.output must be one of table, kv, csv, jsonl, json"),
        ("defaults:\n  table_max_column_width: 1", 2, "must be a whole number from 4 to 10000"),
        ("defaults:\n  table_max_column_width: true", 2, "must be a whole number from 4 to 10000"),
        ("defaults:\n  server: a\n  store: b", 3, "defaults.store cannot be combined with defaults.server"),
        ("defaults:\n  store: b\n  default_graph: c", 3, "defaults.default_graph goes with defaults.server"),
        ("aliases:\n  x: { args: [a] }", None, "aliases.x.query is missing"),
        ("aliases:\n  x: { query: q, args: [1] }", 2, "aliases.x.args must be a list of texts"),
        ("aliases:\n  x: { query: q, params: [1] }", 2, "aliases.x.params must be a mapping"),
        ("profiles:\n  1: { store: x }", 1, "profiles has the name 1, which is not a text: quote it"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, line: int | None, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest) as error:
        read(tmp_path, text)

    place = f"{tmp_path / 'config.yaml'}:" + ("" if line is None else f"{line}:")
    assert str(error.value).startswith(f"{place} ")
    assert said in str(error.value)


@pytest.mark.parametrize("text", ["operator: {", "a: 1\na: 2", "- a", "x: &a [*a"])
def test_a_malformed_file_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"config\.yaml"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{ server: lab, store: x }", "it binds server and store"),
        ("{ default_graph: atlas }", "it binds none of them"),
        ("{ store: x, default_graph: atlas }", "which is one graph: remove default_graph"),
    ],
)
def test_a_profile_that_binds_wrongly_is_kept_and_cannot_be_used(
    text: str, problem: str, tmp_path: Path
) -> None:
    found, _ = read(tmp_path, f"profiles:\n  broken: {text}\n")

    profile = found.profiles["broken"]
    assert problem in str(profile.problem)
    with pytest.raises(BadRequest, match="profile 'broken'"):
        _ = profile.binding
