"""`omnigraph embed` from file to file: records that get vectors, and everything else as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.embedding.mock import MockProvider
from tests.engine.embed.crafts import answer, is_unit
from tests.support.commands import Outcome
from tests.support.in_process import invoke
from tests.unit.embedding.stand_in import Answer, StandIn, stand_in

SPEC = {"dimension": 4, "types": {"Craft": {"target": "vector", "fields": ["name", "tags", "mass"]}}}
SEED = """\
graph: {name: atlas}
sources: {raw_seed: ../data/seed.jsonl}
embeddings:
  dimension: 4
  types:
    Craft: {target: vector, fields: [name, tags, mass]}
    Mission: {target: vector, fields: [title]}
"""
VGR1 = {
    "type": "Craft",
    "note": 7,
    "data": {"code": "VGR-1", "name": "Voyager", "tags": ["a", "b"], "mass": 2.5},
}
VGR2 = {"type": "Craft", "data": {"vector": [], "code": "VGR-2", "name": "Voyager", "tags": []}}
FULL = {"type": "Craft", "data": {"code": "CAS", "name": "Cassini", "vector": [1, 0, 0, 0]}}
EMPTY = {"type": "Craft", "data": {"code": "NONE", "name": " ", "vector": None}}
OTHER = '{"edge":"Flew",  "from": "VGR-1", "to": "m", "price": 1.10}\r'
LINES = [
    json.dumps(VGR1),
    OTHER,
    "",
    json.dumps(FULL),
    '{"type" :"Note"}',
    json.dumps(VGR2),
    json.dumps(EMPTY),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of records and its specification; the provider needs no network."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "seed.jsonl").write_text("\n".join(LINES))
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    return tmp_path


def embed(place: Path, *flags: str, source: str = "data/seed.jsonl", output: str = "out.jsonl") -> Outcome:
    """Embed a file."""
    return invoke("embed", "--input", source, "--output", output, "--spec", "spec.json", *flags, cwd=place)


def written(place: Path, name: str = "out.jsonl") -> dict[str, Any]:
    """Return the data of the records with a code, by it."""
    lines = (place / name).read_text().splitlines()
    records = [json.loads(line) for line in lines if line.strip()]
    return {record["data"]["code"]: record["data"] for record in records if "code" in record.get("data", {})}


@pytest.mark.case("surfaces", 187)
def test_missing_vectors_are_filled_and_nothing_else_is_touched(place: Path) -> None:
    outcome = embed(place, "--json")

    assert json.loads(outcome.stdout) == {
        "input": "data/seed.jsonl",
        "output": "out.jsonl",
        "records": 6,
        "selected_records": 4,
        "embedded_records": 2,
        "cleaned_records": 0,
        "mode": "fill_missing",
        "dimension": 4,
        "model": "",
    }
    lines = (place / "out.jsonl").read_bytes().decode().split("\n")
    assert [lines[place_] for place_ in (1, 2, 3, 4, 6)] == [LINES[place_] for place_ in (1, 2, 3, 4, 6)]
    first = json.loads(lines[0])
    assert list(first) == ["type", "note", "data"]
    assert list(first["data"]) == ["code", "name", "tags", "mass", "vector"]
    assert list(json.loads(lines[5])["data"]) == ["vector", "code", "name", "tags"]
    mock = MockProvider("").embed(
        ["type: Craft\nname: Voyager\ntags: a, b\nmass: 2.5", "type: Craft\nname: Voyager"], "document", 4
    )
    found = written(place)
    assert [found["VGR-1"]["vector"], found["VGR-2"]["vector"]] == [pytest.approx(v) for v in mock]
    again = embed(place, "--json", source="out.jsonl", output="twice.jsonl")
    assert json.loads(again.stdout)["embedded_records"] == 0
    assert (place / "twice.jsonl").read_bytes() == (place / "out.jsonl").read_bytes()


@pytest.mark.case("surfaces", 187)
@pytest.mark.parametrize(
    ("flags", "mode", "changed"),
    [
        (["--reembed-all"], "reembed_all", {"VGR-1", "VGR-2", "CAS"}),
        (["--select", "Craft:code=VGR-1"], "reembed_selected", {"VGR-1"}),
        (["--select", "code=CAS", "--select", "mass=2.50"], "reembed_selected", {"VGR-1", "CAS"}),
        (["--type", "Craft"], "fill_missing", {"VGR-1", "VGR-2"}),
        (["--clean"], "clean", {"VGR-2", "CAS", "NONE"}),
        (["--clean", "--select", "code=CAS"], "clean", {"CAS"}),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(sorted(value)),
)
def test_flags_choose_what_is_embedded_anew_or_cleaned(
    place: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], mode: str, changed: set[str]
) -> None:
    if mode == "clean":
        monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "0")
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "there is none")
    before = written(place, "data/seed.jsonl")

    outcome = embed(place, *flags, "--json")

    after, document = written(place), json.loads(outcome.stdout)
    assert document["mode"] == mode
    assert {code for code in after if after[code] != before[code]} == changed
    assert document["cleaned_records" if mode == "clean" else "embedded_records"] == len(changed)
    assert all(("vector" in after[code]) == (mode != "clean") for code in changed)


@pytest.mark.case("surfaces", 187)
def test_the_output_appears_only_on_success(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "out.jsonl").write_text("as it was")
    with stand_in(answer([1, 0, 0, 0]), answer([1, 0])) as server:
        use(server, monkeypatch)

        outcome = embed(place, "--batch", "1")

    assert outcome.code == 1
    assert "openai was asked for a vector of 4 numbers and returned 2" in outcome.stderr
    assert (place / "out.jsonl").read_text() == "as it was"
    assert sorted(path.name for path in place.iterdir()) == ["data", "out.jsonl", "spec.json"]


def use(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose a provider on this machine by the environment."""
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK", raising=False)
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai")
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "0")


def test_a_manifest_names_files_and_fields_and_a_provider_is_tried_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "config").mkdir()
    (place / "config" / "seed.yaml").write_text(SEED)
    with stand_in(Answer(status=503), answer([3, 0, 0, 4], [0, 2, 0, 0])) as server:
        use(server, monkeypatch)

        outcome = invoke("embed", "--seed", "config/seed.yaml", cwd=place)

    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout == "embedded 2 of 4 selected (6 records in all): config/build/seed.embedded.jsonl\n"
    assert len(server.asked) == 2
    assert server.asked[1].body["input"][0].startswith("type: Craft\nname: Voyager\n")
    found = written(place, "config/build/seed.embedded.jsonl")
    assert found["VGR-1"]["vector"] == pytest.approx([0.6, 0, 0, 0.8])
    assert all(is_unit(found[code]["vector"]) for code in ("VGR-1", "VGR-2"))


def test_a_missing_key_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMNIGRAPH_EMBEDDINGS_MOCK", "OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    outcome = embed(place, "--json")

    assert (outcome.code, json.loads(outcome.stdout)["code"]) == (1, "internal")
    assert "OPENROUTER_API_KEY or OPENAI_API_KEY is needed" in outcome.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "invalid JSON at column 2"),
        (b"[1]", "a record must be an object"),
        (b'{"type": "Craft", "data": []}', "the data of a Craft must be an object"),
        (b'{"type": "Craft", "data": {"a": 1, "a": 2}}', "member 'a' appears twice"),
        (b'{"type": "Craft", "data": {"mass": NaN}}', "NaN is not JSON"),
        (b'{"type": "Craft", "data": {"name": "\\ud800"}}', "a text with half a surrogate pair"),
        (b'{"type": "Craft\xff"}', "not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_line_that_is_no_record_is_named_by_file_and_line(place: Path, line: bytes, message: str) -> None:
    (place / "bad.jsonl").write_bytes(b"\n" + json.dumps(VGR1).encode() + b"\n" + line + b"\n")

    outcome = embed(place, source="bad.jsonl")

    assert outcome.code == 1
    assert f"bad.jsonl:3: {message}" in outcome.stderr
    assert not (place / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ('{"dimension": 4,\n "types": }', "spec.json:2: "),
        ('{"dimension": 0, "types": {}}', "'dimension' must be a number from 1"),
        ('{"dimension": 4, "types": {}}', "'types' must have at least one type"),
        ('{"dimension": 4, "typ": {}}', "unknown member 'typ'; the members are dimension, types"),
        (
            '{"dimension": 4, "types": {"Craft": {"target": "v"}}}',
            "spec.json: Craft: 'fields' must be a list",
        ),
        (
            '{"dimension": 4, "types": {"C": {"target": "v", "fields": ["v"]}}}',
            "'v' cannot be made from itself",
        ),
    ],
)
def test_a_wrong_specification_says_what_is_wrong(place: Path, spec: str, message: str) -> None:
    (place / "spec.json").write_text(spec)

    outcome = embed(place)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert message in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "nothing to embed: name a graph, or name files"),
        (["--input", "spec.json"], 2, "--input, --output and --spec go together"),
        (["--seed", "spec.json", "--spec", "spec.json"], 2, "--spec and --seed cannot be combined"),
        (["g.omni", "--clean"], 2, "--clean applies to files"),
        (["--seed", "spec.json", "--branch", "b"], 2, "--branch applies to a graph"),
        (["--seed", "spec.json", "--clean", "--reembed_all"], 2, "--clean and --reembed-all cannot"),
        (["--seed", "spec.json", "--select", "code"], 2, "--select 'code' selects nothing"),
        (["--seed", "spec.json"], 1, "'sources.raw_seed' or 'seed.data' must name the file"),
        (["https://graph.example/g"], 1, "behind a server"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_does_not_go_together_is_refused(
    place: Path, arguments: list[str], code: int, message: str
) -> None:
    outcome = invoke("embed", *arguments, cwd=place)

    assert outcome.code == code
    assert message in outcome.stderr


def test_types_that_the_specification_does_not_have_are_refused(place: Path) -> None:
    outcome = embed(place, "--type", "Crafts", "--reembed_all")

    assert outcome.code == 1
    assert "type 'Crafts' is not in the specification; did you mean 'Craft'?" in outcome.stderr
    assert "warning: '--reembed_all' is deprecated, use '--reembed-all'" in outcome.stderr
