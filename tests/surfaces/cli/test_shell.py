"""`omnigraph shell`: what is typed and what it answers, through a pipe and at a real terminal."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from omnigraph.catalog.build import compile_schema
from omnigraph.cli.shell.candidates import Names, candidates
from omnigraph.cli.shell.highlight import highlighted
from omnigraph.cli.shell.history import history_file
from omnigraph.cli.shell.loop import statements
from omnigraph.cli.shell.statement import is_complete
from omnigraph.core.span import Source
from tests.support.atlas import ATLAS, GRAPH, commits, place_atlas
from tests.support.commands import Outcome
from tests.support.in_process import invoke
from tests.support.seam import patched
from tests.support.terminal import Terminal, on_terminal

CODES = "match { $c: Craft } return { $c.code }"
NAMED = "query named($code: String) { match { $c: Craft { code: $code } } return { $c.name } }"


def typed(folder: Path, *lines: str, flags: Sequence[str] = ()) -> Outcome:
    """Run a session on what comes through a pipe."""
    return invoke("shell", GRAPH, *flags, cwd=folder, stdin="".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph that no test changes, with a branch."""
    folder = tmp_path_factory.mktemp("shell")
    place_atlas(folder)
    assert invoke("branch", "create", "june", "--store", GRAPH, cwd=folder).code == 0
    return folder


@pytest.mark.case("surfaces", 439)
def test_queries_and_mutations_run_when_they_are_complete(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = typed(
        tmp_path,
        CODES,
        "match {",
        '    $c: Craft { code: "VGR-1" }',
        "}",
        "return { $c.name }",
        'insert Mission { title: "Saturn" }',
        "query both() {",
        '    insert Craft { code: "CAS-1", name: "Cassini" }',
        '    insert Flew { from: "CAS-1", to: "Saturn" }',
        "}",
        "match { $m: Mission } return { count($m) as n }",
        flags=["--as", "mira"],
    )

    assert (outcome.code, outcome.stderr) == (0, "")
    said = outcome.stdout.splitlines()
    assert said[:6] == ["3 rows from branch main via typed", "c.code", "------", "GLL-1", "VGR-1", "VGR-2"]
    assert said[6:10] == ["1 row from branch main via typed", "c.name", "------", "vgr-1"]
    assert said[10] == "typed on main: 1 node and 0 edges affected"
    assert said[12] == "both on main: 1 node and 1 edge affected"
    assert said[-1].strip() == "3"
    newest, second, *_ = commits(tmp_path)
    assert [newest["actor_id"], second["actor_id"]] == ["mira", "mira"]
    assert said[13] == f"commit {newest['graph_commit_id']}"


@pytest.mark.case("surfaces", 440)
def test_declarations_are_kept_and_called_with_parameters(atlas: Path) -> None:
    outcome = typed(
        atlas,
        NAMED,
        'named {"code": "VGR-1"}',
        '\\params {"code": "VGR-2"}',
        "named",
        NAMED.replace("$c.name", "$c.code"),
        "\\queries",
        "\\params",
        "\\format jsonl",
        "named",
    )

    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines() == [
        'kept named; run it with: named {"code": …}',
        *("1 row from branch main via named", "c.name", "------", "vgr-1"),
        '{"code": "VGR-2"}',
        *("1 row from branch main via named", "c.name", "------", "vgr-2"),
        *("1 row from branch main via named", "c.code", "------", "VGR-2"),
        "named",
        '{"code": "VGR-2"}',
        "jsonl",
        '{"kind":"metadata","query_name":"named","target":{"branch":"main","snapshot":null},"row_count":1}',
        '{"c.code":"VGR-2"}',
    ]


@pytest.mark.case("surfaces", 440)
def test_branches_past_states_schema_and_plans(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    assert invoke("branch", "create", "june", "--store", GRAPH, cwd=tmp_path).code == 0
    loaded = commits(tmp_path)[0]["graph_commit_id"]
    count = "match { $m: Mission } return { count($m) as n }"

    outcome = typed(
        tmp_path,
        "\\branch",
        "\\branch june",
        'insert Mission { title: "Saturn" }',
        count,
        f"\\at {loaded}",
        count,
        'insert Mission { title: "no" }',
        "\\at",
        count,
        "\\branch main",
        count,
        f"\\explain {CODES}",
        "\\describe Mission",
        "\\schema",
        "\\help",
        "\\quit",
        "this is not read any more",
    )

    assert outcome.stderr == "error: the past cannot be changed: \\at goes back to the present\n"
    said = outcome.stdout.splitlines()
    assert said[:3] == ["  june", "* main", "on branch june"]
    counted = [said[at + 3].strip() for at, line in enumerate(said) if line.startswith("1 row from")]
    assert counted == ["3", "2", "3", "2"]
    assert f"at commit {loaded}: reads see this state" in said
    assert f"1 row from snapshot {loaded} via typed" in said
    assert "at the present of june" in said
    assert any(line.startswith("query typed()") for line in said)
    assert any(line.startswith("title     String  @key") for line in said)
    assert "\n".join(ATLAS.splitlines()) in outcome.stdout
    assert "\x1b" not in outcome.stdout
    for command in ("branch", "at", "params", "explain", "schema", "describe", "queries", "format", "quit"):
        assert f"  \\{command}" in outcome.stdout


@pytest.mark.case("surfaces", 441)
def test_an_error_ends_its_statement_and_not_the_session(atlas: Path) -> None:
    outcome = typed(
        atlas,
        "match { $c: Craf } return { $c.code }",
        "\\branch nope",
        "\\nonsense",
        "\\describe",
        "\\describe Craf",
        "\\explain",
        "\\params [1]",
        "\\params {",
        "\\format xml",
        "\\at 01NOPE",
        "nobody",
        "exit",
        'insert Craft { code: "VGR-1", name: "again", name: "twice" }',
        "delete",
        "",
        '"never closed',
        "",
        CODES,
        "match {",
    )

    assert outcome.code == 1
    assert outcome.stdout.splitlines()[0] == "3 rows from branch main via typed"
    assert "Traceback" not in outcome.stderr
    for said in (
        "did you mean 'Craft'?",
        "branch 'nope' not found",
        "unknown command \\nonsense: \\help lists them",
        "\\describe takes the name of a type",
        "unknown type 'Craf'",
        "\\explain takes a read",
        "the parameters must be a JSON object",
        "the parameters are not JSON",
        "unknown format 'xml': table, kv, csv, jsonl, json",
        "no query 'nobody' is kept in this session",
        "no query 'exit' is kept in this session; \\quit ends the session",
        "expected the type to delete",
    ):
        assert said in outcome.stderr, outcome.stderr
    assert len(commits(atlas)) == 3


@pytest.mark.case("surfaces", 441)
def test_a_defect_and_bytes_that_are_no_text_do_not_end_it(
    atlas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise RuntimeError("a defect")

    patched(monkeypatch, "omnigraph.graph.graph.Graph.schema", fail)

    outcome = invoke("shell", GRAPH, cwd=atlas, stdin=b"\xff\xfe\n\\schema\n" + CODES.encode() + b"\n")

    assert outcome.code == 1
    assert "has no UTF-8 form" in outcome.stderr
    assert "RuntimeError: a defect" in outcome.stderr
    assert outcome.stdout.startswith("3 rows")


@pytest.mark.case("surfaces", 441)
def test_a_session_for_reading_writes_nothing(atlas: Path) -> None:
    outcome = typed(atlas, 'insert Mission { title: "x" }', CODES, flags=["--read-only", "--branch", "june"])

    assert outcome.code == 1
    assert "this handle is read-only" in outcome.stderr
    assert outcome.stdout.startswith("3 rows from branch june")
    assert typed(atlas, CODES, flags=["--json"]).code == 2
    assert typed(atlas, CODES, flags=["--branch", "nope"]).code == 1


@pytest.mark.case("surfaces", 439)
@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("\\branch", True),
        (CODES, True),
        ("match { $c: Craft }", False),
        ("match { $c: Craft", False),
        ("match { $c: Craft } return", False),
        ('update Craft set { name: "x" }', False),
        ('update Craft set { name: "x" } where code =', False),
        ('update Craft set { name: "x" } where code = "y"', True),
        ("delete Craft", False),
        ("query q($a: String)", False),
        ("query q() { match { $c: Craft } return { $c.code } }", True),
        ("query q() { match { $c: Craft } return { $c.code }", False),
        ("named", True),
        ('named {"code":', False),
        ('named {"code": "x"}', True),
        ('insert Craft { name: "open', False),
        ("/* a comment", False),
        ("match { $c: Craft ) }", True),
        ("nonsense here", True),
        ("match {\n\n", True),
        ("match {\n", False),
        ("\udcff", True),
    ],
)
def test_a_text_goes_on_while_only_its_end_is_missing(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_text_is_cut_into_statements() -> None:
    lines = iter(
        ["match {\n", "$c: Craft }\n", "return { $c.code }\n", "\n", "\\help\n", "match {\n", "\n", "x"]
    )

    found = [text.strip() for text in statements(lines)]

    assert [text for text in found if text] == [
        "match {\n$c: Craft }\nreturn { $c.code }",
        "\\help",
        "match {",
        "x",
    ]


NAMES = Names(compile_schema(Source(ATLAS)), ("main", "june"), ("named",))


@pytest.mark.case("surfaces", 442)
@pytest.mark.parametrize(
    ("text", "word", "offered"),
    [
        ("\\des", "\\des", ["\\describe"]),
        ("\\branch j", "j", ["june"]),
        ("\\describe ", "", ["Craft", "Flew", "Mission"]),
        ("\\format js", "js", ["json", "jsonl"]),
        ("match { $c: Cr", "Cr", ["Craft"]),
        ("match { $m: Mission } return { $m.", "", ["id", "title"]),
        ("match { $c: Craft } return { $c.ma", "ma", ["mass_kg"]),
        ("match { $x } return { $x.t", "t", ["title"]),
        ("insert Craft { la", "la", ["launched"]),
        ("update Mission set { ti", "ti", ["title"]),
        ("match { $c: Craft $c fl", "fl", ["flew"]),
        ("nam", "nam", ["named"]),
        ("ret", "ret", ["return"]),
    ],
)
def test_names_are_offered_by_the_catalog(text: str, word: str, offered: list[str]) -> None:
    assert candidates(text, NAMES) == (word, offered)


@pytest.mark.case("surfaces", 442)
def test_colours_cover_the_text_exactly() -> None:
    text = 'match { $c: Craft { code: "VGR\n-1" } } // who\nreturn { count($c) } limit 3 # "open'

    lines = highlighted(text)

    assert "\n".join("".join(piece for _, piece in line) for line in lines) == text
    styles = {piece: style for line in lines for style, piece in line}
    assert styles["match"] == styles["return"] == styles["count"] == "bold ansiblue"
    assert (styles["Craft"], styles["$c"], styles["3"]) == ("ansicyan", "ansiyellow", "ansimagenta")
    assert (styles['"VGR'], styles["// who"], styles["#"]) == ("ansigreen", "ansibrightblack", "ansired")
    assert highlighted("\\branch june") == [[("bold", "\\branch"), ("", " june")]]
    assert highlighted("\udcff") == [[("", "\udcff")]]


@pytest.mark.case("surfaces", 443)
def test_only_its_user_may_read_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    path = history_file()
    assert path is not None
    assert path == tmp_path / "state" / "omnigraph" / "history"
    made = stat.S_IMODE(path.stat().st_mode)
    path.chmod(0o644)
    history_file()

    assert (made, stat.S_IMODE(path.stat().st_mode)) == (0o600, 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.case("surfaces", 443)
def test_what_is_no_plain_file_is_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "omnigraph").mkdir()
    path, elsewhere = tmp_path / "omnigraph" / "history", tmp_path / "elsewhere"

    path.symlink_to(elsewhere)
    of_link = history_file()
    path.unlink()
    os.mkfifo(path)
    of_pipe = history_file()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "omnigraph" / "history"))

    assert (of_link, of_pipe, history_file()) == (None, None, None)
    assert not elsewhere.exists()


def ask(terminal: Terminal, text: str, *, prompt: str = "main>") -> None:
    """Wait for the prompt, and type."""
    terminal.wait_for(prompt)
    terminal.type(text)


@pytest.mark.slow
@pytest.mark.case("surfaces", 442)
@pytest.mark.case("surfaces", 443)
def test_a_session_at_a_terminal(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    assert invoke("branch", "create", "june", "--store", GRAPH, cwd=tmp_path).code == 0
    settings = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "PAGER": "sed s/^/paged:/",
    }

    with on_terminal("shell", GRAPH, cwd=tmp_path, **settings) as terminal:
        ask(terminal, f"{CODES}\r")
        assert "VGR-1" in terminal.wait_for("VGR-2")
        ask(terminal, "match { $c: Craft }\r")
        terminal.wait_for("...>")
        terminal.type("return { count($c) as n }\r")
        terminal.wait_for("1 row from branch main via typed")
        ask(terminal, "half a line\x03")
        ask(terminal, "match { $c: Craf } return { $c.code }\r")
        terminal.wait_for("did you mean 'Craft'?")
        ask(terminal, "\\bra\t")
        terminal.wait_for("nch")
        terminal.type(" june\r")
        terminal.wait_for("on branch june")
        ask(terminal, "\\schema\r", prompt="june>")
        terminal.wait_for("node Craft {")
        ask(terminal, "\\quit\r", prompt="june>")
        assert terminal.wait_for_end() == 0

    history = tmp_path / "state" / "omnigraph" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    kept = history.read_text()
    assert CODES in kept
    assert "\\branch june" in kept
    assert "half a line" not in kept
    assert "\x1b[" in terminal.shown, "what is typed has colours"


@pytest.mark.slow
@pytest.mark.case("surfaces", 443)
def test_a_long_answer_is_paged_and_ctrl_d_ends_the_session(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    settings = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "PAGER": "sed s/^/paged:/",
    }
    many = " ".join(f'insert Mission {{ title: "m{number:02}" }}' for number in range(60))

    with on_terminal("shell", GRAPH, cwd=tmp_path, **settings) as terminal:
        ask(terminal, f"query many() {{ {many} }}\r")
        terminal.wait_for("60 nodes and 0 edges affected")
        ask(terminal, "match { $m: Mission } return { $m.title }\r")
        terminal.wait_for("paged:m59")
        ask(terminal, f"{CODES}\r")
        assert "paged:" not in terminal.wait_for("VGR-2")
        ask(terminal, "\x04")
        assert terminal.wait_for_end() == 0


@pytest.mark.case("surfaces", 520)
@pytest.mark.parametrize(
    ("typed_lines", "place"),
    [
        (["match { $c: Craf } return { $c.code }"], "1:13"),
        (["match {", "    $c: Craft", "    $c.nam = 1", "}", "return { $c.code }"], "3:5"),
        (["insert Craf {", '    code: "A"', "}"], "1:8"),
        (["query whole() {", "    match { $c: Craf }", "    return { $c.code }", "}"], "2:17"),
        (["match {", "    $c Craft", "}", "return { $c.code }"], "2:"),
    ],
)
def test_the_first_line_that_is_typed_is_the_first(atlas: Path, typed_lines: list[str], place: str) -> None:
    outcome = typed(atlas, *typed_lines, "")

    assert outcome.code == 1
    assert f"{place}" in outcome.stderr.splitlines()[1], outcome.stderr
