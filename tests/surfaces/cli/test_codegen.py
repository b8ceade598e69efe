"""`omnigraph codegen`: declarations that a program can use as they are."""

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.graph.encode import json_values
from tests.support.in_process import invoke
from tests.support.typescript import Interfaces, Named, NotTypeScriptError, interfaces_of, misfit

SCHEMA = """\
node Person {
    name: String @key
    age: I64?
    class: String?
    str: String?
    date: Date?
    model_x: I32?
    schema: String?
    _under: I32?
    seen: DateTime?
    mood: enum(calm, glad)?
    tags: [String]?
    place: Vector(2)?
    photo: Blob?
    town: String @default("Ruhr")
}
node Note { text: String }
node Knows { x: String @key }
edge Knows: Person -> Person { since: I32? }
edge In: Person -> Knows
"""
QUERIES = """\
query friends_of($who: String, $class: I32?) {
    match { $p: Person { name: $who }  $p in $q }
    return { $p.name, $p, $p.seen as seen, $q }
}
query stats() { match { $p: Person } return { $p.mood, count($p) as n, max($p.age) as oldest } }
query add($name: String) { insert Person { name: $name } }
"""
USES = """
import datetime
import omnigraph
import {module} as shapes

graph = omnigraph.open("g.omni")
at = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
ann = shapes.Person(name="ann", class_="x", str_="y", date=at.date(), model_x_=3, schema_="z", seen=at,
                    mood="glad", tags=["t"], place=[1.0, 2.0], photo=b"p")
graph.load_objects(
    [ann, shapes.Person(name="bo"), shapes.Note(text="t"), shapes.Knows(x="k"), shapes.In(src="ann", dst="k"),
     shapes.KnowsEdge(src="ann", dst="bo", since=4)],
    "append", types={{shapes.KnowsEdge: "edge:Knows"}},
)
given: shapes.FriendsOfParams = {{"who": "ann"}}
rows: list[shapes.FriendsOfRow] = graph.query("queries.gq", "friends_of", given).to(shapes.FriendsOfRow)
name: str = rows[0].p_name
friend: shapes.Knows = rows[0].q
stats: list[shapes.StatsRow] = graph.query("queries.gq", "stats").to(shapes.StatsRow)
people = graph.query("query q() {{ match {{ $p: Person }} return {{ $p }} }}").to(shapes.Person)
count: int = stats[0].n
"""
USES_IN_TYPESCRIPT = """\
import type { FriendsOfParams, FriendsOfRow, Knows, KnowsEdge, Person } from "./shapes.ts";
import "./shapes.ts";

const ann: Person = {
  name: "ann", class: "x", _under: 3, mood: "glad", tags: ["t"], place: [1, "NaN"], town: "Ruhr",
};
const edge: KnowsEdge = { src: ann.name, dst: "bo", since: null };
const given: FriendsOfParams = { who: edge.src };
const knows: Knows = { x: "k" };
const row: FriendsOfRow = { "p.name": given.who, p: ann, seen: null, q: knows };
console.log(JSON.stringify([row["p.name"], row.p.mood, row.q.x]));
"""
STRIPS = "--experimental-strip-types"
KINDS = {"models": [], "data": ["--dataclasses"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a schema, queries and an empty graph."""
    (tmp_path / "schema.pg").write_text(SCHEMA)
    (tmp_path / "queries.gq").write_text(QUERIES)
    omnigraph.init(tmp_path / "g.omni", SCHEMA, durability="process").close()
    return tmp_path


def generated(folder: Path, *arguments: str) -> str:
    """Return what is printed."""
    outcome = invoke("codegen", *arguments, "--schema", "schema.pg", "--queries", "queries.gq", cwd=folder)
    assert outcome.code == 0, outcome
    return outcome.stdout


def imported(path: Path) -> ModuleType:
    """Return a module by its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.case("surfaces", 670)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_generated_is_used_as_it_is(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / f"{kind}_shapes.py").write_text(generated(folder, "python", *KINDS[kind]))
    monkeypatch.setitem(sys.modules, f"{kind}_shapes", imported(folder / f"{kind}_shapes.py"))
    names: dict[str, Any] = {}

    exec(compile(USES.format(module=f"{kind}_shapes"), "uses", "exec"), names)

    (row,), ann = names["rows"], names["ann"]
    assert (row.p_name, row.seen, row.q.x) == ("ann", ann.seen, "k")
    loaded = names["people"][0]
    for whole in (row.p, loaded):
        assert (whole.class_, whole.str_, whole.model_x_, whole.schema_, whole.town) == (
            "x",
            "y",
            3,
            "z",
            "Ruhr",
        )
    assert {one.p_mood: (one.n, one.oldest) for one in names["stats"]} == {"glad": (1, None), None: (1, None)}
    assert names["graph"].table("Knows").num_rows == 1
    assert names["graph"].query("query q() { match { $a knows $b } return { $b.name } }").scalar() == "bo"


@pytest.mark.slow
@pytest.mark.case("surfaces", 670)
def test_type_checkers_accept_it_and_its_use(folder: Path) -> None:
    for kind, flags in KINDS.items():
        (folder / f"{kind}_shapes.py").write_text(generated(folder, "python", *flags))
        (folder / f"uses_{kind}.py").write_text(USES.format(module=f"{kind}_shapes"))

    files = [f"{kind}_shapes.py" for kind in KINDS] + [f"uses_{kind}.py" for kind in KINDS]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *files],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.case("surfaces", 671)
def test_the_same_schema_gives_the_same_text_from_a_file_and_from_a_graph(folder: Path) -> None:
    for language in ("python", "typescript"):
        text = generated(folder, language)
        outcome = invoke("codegen", language, "g.omni", "--queries", "queries.gq", "--out", "x", cwd=folder)

        assert (outcome.code, outcome.stdout) == (0, "")
        assert (folder / "x").read_text() == text == generated(folder, language)
        assert re.search(
            r"Generated by `omnigraph codegen \w+` from schema sha256:[0-9a-f]{64}; do not edit", text
        )
    ast.parse(generated(folder, "python"))


@pytest.mark.case("surfaces", 672)
def test_typescript_has_an_interface_for_each_shape(folder: Path) -> None:
    text = generated(folder, "typescript")
    (folder / "shapes.ts").write_text(text)
    interfaces = dict(re.findall(r"^export interface (\w+) \{\n((?:  .+;\n)*)\}$", text, re.MULTILINE))
    member = re.compile(r'  (?:[A-Za-z_$][\w$]*|"[^"\n]+")\??: [\w "|()\[\]-]+;')

    assert sorted(interfaces) == [
        *("AddParams", "FriendsOfParams", "FriendsOfRow", "In", "Knows", "KnowsEdge", "Note", "Person"),
        *("StatsParams", "StatsRow"),
    ]
    assert all(member.fullmatch(line) for body in interfaces.values() for line in body.splitlines())
    assert interfaces["FriendsOfRow"].splitlines() == [
        '  "p.name": string;',
        "  p: Person;",
        "  seen: string | null;",
        "  q: Knows;",
    ]
    assert '  mood?: "calm" | "glad" | null;' in interfaces["Person"]
    if (tsc := shutil.which("tsc")) is not None:
        subprocess.run([tsc, "--noEmit", "--strict", "shapes.ts"], cwd=folder, check=True)


@pytest.mark.case("surfaces", 864)
def test_node_reads_typescript_and_its_use(folder: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [node, "--no-warnings", STRIPS, *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    if run("--eval", "").returncode:
        pytest.skip(f"this node is older than 22.6 and has no {STRIPS}")
    (folder / "shapes.ts").write_text(generated(folder, "typescript"))
    (folder / "uses.ts").write_text(USES_IN_TYPESCRIPT)
    (folder / "wrong.ts").write_text(
        generated(folder, "typescript").replace("interface Note {", "interface {")
    )

    used, wrong = run("uses.ts"), run("wrong.ts")

    assert (used.returncode, used.stdout) == (0, '["ann","glad","k"]\n'), used.stderr
    assert wrong.returncode != 0


RECORDS = (
    '{"type": "Person", "data": {"name": "ann", "age": "1152921504606846976", "class": "x", "model_x": 3, '
    '"date": "2024-05-01", "seen": "2024-05-01T12:00:00Z", "mood": "glad", "tags": ["t"], '
    '"place": [0.1, -1], "photo": "base64:cA=="}}\n'
    '{"type": "Person", "data": {"name": "bo", "age": 7}}\n'
    '{"type": "Note", "data": {"text": "*/ }"}}\n'
    '{"type": "Knows", "data": {"x": "k"}}\n'
    '{"edge": "In", "from": "ann", "to": "k"}\n'
    '{"edge": "Knows", "from": "ann", "to": "bo", "data": {"since": 4}}\n'
)


@pytest.mark.case("surfaces", 890)
def test_records_rows_and_parameters_fit_the_interfaces(folder: Path) -> None:
    interfaces = interfaces_of(generated(folder, "typescript"))
    with omnigraph.open(folder / "g.omni") as graph:
        graph.load(RECORDS.encode(), "append")
        records = [json.loads(line) for line in b"".join(graph.export().lines()).splitlines()]
        friends = graph.query(folder / "queries.gq", "friends_of", {"who": "ann"}).to_json()["rows"]
        stats = graph.query(folder / "queries.gq", "stats").to_json()["rows"]

    assert [found for record in records if (found := _misfit_of_record(record, interfaces))] == []
    for name, rows in (("FriendsOfRow", friends), ("StatsRow", stats)):
        assert rows
        assert [found for row in rows if (found := misfit(_without_id(row), Named(name), interfaces))] == []
    assert misfit({"who": "ann", "class": None}, Named("FriendsOfParams"), interfaces) is None
    assert misfit({"who": "ann"}, Named("FriendsOfParams"), interfaces) is None
    assert misfit({}, Named("StatsParams"), interfaces) is None


@pytest.mark.case("surfaces", 890)
def test_a_vector_has_what_json_has_of_it(folder: Path) -> None:
    """No write of ours stores one that is not finite: the values stand for what another program wrote."""
    place = interfaces_of(generated(folder, "typescript"))["Person"]["place"].type
    vectors = pa.array([[float("nan"), float("inf")], [0.1, float("-inf")], None], pa.list_(pa.float32(), 2))

    assert [misfit(value, place, {}) for value in json_values(vectors)] == [None] * 3
    assert misfit([None], place, {}) is not None


@pytest.mark.case("surfaces", 890)
@pytest.mark.parametrize(
    "broken",
    [
        ("interface Note {", "interface {"),
        ("interface Note {", "interface number {"),
        ("interface Note {", "interface Person {"),
        ("q: Knows;", "q: Nobody;"),
        ("name: string;", "name: string"),
        ("name: string;", "name: string; name: string;"),
        ("name: string;", "na me: string;"),
        ('"calm" | "glad"', '"calm" "glad"'),
        ('"calm"', '"calm'),
        ("(number", "(number | (number"),
        ("/** A node of type Note. */", "/** A node of type */ Note. */"),
    ],
)
def test_a_module_with_a_mistake_is_no_typescript(folder: Path, broken: tuple[str, str]) -> None:
    text = generated(folder, "typescript")
    assert broken[0] in text

    with pytest.raises(NotTypeScriptError):
        interfaces_of(text.replace(*broken, 1))


def _misfit_of_record(record: dict[str, Any], interfaces: Interfaces) -> str | None:
    """Return what of an exported record does not fit; the id of a node with a key is derived."""
    if "type" in record:
        return misfit(_without_id(record["data"]), Named(record["type"]), interfaces)
    name = record["edge"] + "Edge" * (f"{record['edge']}Edge" in interfaces)
    return misfit({"src": record["from"], "dst": record["to"], **record["data"]}, Named(name), interfaces)


def _without_id(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {name: _without_id(found) for name, found in value.items() if name != "id"}


@pytest.mark.case("surfaces", 673)
def test_what_cannot_be_declared_is_refused(folder: Path) -> None:
    (folder / "twice.gq").write_text(
        "query q() { match { $p: Person } return { $p.name, $p.age as p_name } }"
    )
    (folder / "clash.gq").write_text("query a_b() { match { $p: Person } return { $p } }")
    (folder / "wrong.gq").write_text("query q() { match { $p: Nobody } return { $p } }")
    (folder / "like.pg").write_text("node ABRow { x: String @key }\nnode Person { name: String @key }")
    refused = [
        (
            ["python", "--schema", "schema.pg", "--queries", "twice.gq"],
            1,
            "two fields p_name: give one an alias",
        ),
        (["python", "--schema", "like.pg", "--queries", "clash.gq"], 1, "would both be called ABRow"),
        (["python", "--schema", "schema.pg", "--queries", "wrong.gq"], 1, "Nobody"),
        (["python", "--schema", "schema.pg", "--out", "no/x.py"], 1, "cannot write no/x.py"),
        (["python", "g.omni", "--schema", "schema.pg"], 2, "cannot be combined"),
        (["typescript", "--dataclasses", "--schema", "schema.pg"], 2, "--dataclasses goes with python"),
        (["ruby", "--schema", "schema.pg"], 2, "ruby"),
    ]

    for arguments, code, said in refused:
        outcome = invoke("codegen", *arguments, cwd=folder)
        assert (outcome.code, said in outcome.stderr) == (code, True), outcome
