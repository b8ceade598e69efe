"""One journey through every command that reaches a graph in more than one way, for comparing the ways."""

import re
from base64 import b64encode
from pathlib import Path

from tests.support.atlas import GRAPH, MUTATIONS, craft, head, lines, place_atlas
from tests.support.commands import Outcome, write

EVERY_CRAFT = (
    "query q() { match { $c: Craft } return { $c.code, $c.mass_kg, $c.launched } order { $c.code } }"
)
CRAFTS = """\
query crafts() { match { $c: Craft } return { $c.code } }
query craft($code: String) { match { $c: Craft { code: $code } } return { $c.code, $c.name } }
query named($code: String, $name: String) { update Craft set { name: $name } where code = $code }
"""
PROJECT = """\
cli: { graph: atlas }
graphs: { atlas: { uri: "URI" } }
aliases:
  craft: { command: query, query: crafts.gq, name: craft, args: [code] }
  named: { command: mutate, query: crafts.gq, name: named, args: [code, name] }
"""
DOC = """
node Doc {
    code: String @key
    scan: Blob?
}
"""
SEEDED = "the commit that loaded the seed"
VARYING = [
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID"),
    (re.compile(r'("(?:created|authored)_at": )\d+'), r"\1TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r'(cursor"?:? "?)[A-Za-z0-9_=-]{30,}'), r"\1TOKEN"),
    (re.compile(r'(next_page_token": ")[A-Za-z0-9_=-]{30,}'), r"\1TOKEN"),
    (re.compile(r'("id": ")[0-9a-f]{32}"'), r'\1TYPE"'),
    (re.compile(r'(etag\W+")[0-9a-f]{32}'), r"\1ETAG"),  # of a value of a type, whose identity is random
    (re.compile(r"http://127\.0\.0\.1:\d+|/\S*/g\.omni|\bg\.omni\b"), "GRAPH"),
    (re.compile(r"\((?:served|direct, local)\)"), "(ACCESS)"),
]
MUTATE = ["mutate", "--query", "atlas.gq", "--quiet"]
JOURNEY: list[list[str]] = [
    ["query", "-e", EVERY_CRAFT],
    ["query", "-e", EVERY_CRAFT, "--format", "csv"],
    ["query", "-e", EVERY_CRAFT, "--json"],
    ["branch", "list", "--json"],
    ["branch", "create", "june"],
    ["branch", "create", "june", "--json"],
    ["branch", "create", "review/july", "--from", "june", "--json"],
    [*MUTATE, "add_craft", "--branch", "june", "--params", '{"code": "CAS-1", "name": "Cassini"}'],
    [*MUTATE, "retire", "--params", '{"code": "NONE"}', "--json"],
    [*MUTATE, "rename", "--params", '{"code": "VGR-1"}'],
    [*MUTATE, "rename", "--params", '{"code": "VGR-1", "name": "Main"}', "--message", "a note", "--json"],
    [
        *MUTATE,
        "rename",
        "--params",
        '{"code": "VGR-1", "name": "X"}',
        "--if-commit",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ],
    ["mutate", "-e", "query broken( {"],
    ["query", "-e", EVERY_CRAFT, "--branch", "nowhere", "--json"],
    ["load", "--data", "more.jsonl", "--mode", "append", "--json"],
    ["load", "--data", "more.jsonl", "--mode", "append", "--json"],
    ["load", "--data", "more.jsonl", "--mode", "merge", "--branch", "loaded", "--from", "june", "--no-index"],
    ["snapshot", "--branch", "june"],
    ["snapshot", "--json"],
    ["commit", "list"],
    ["commit", "list", "--json", "--filter", "actor=act-seed"],
    ["commit", "list", "--json", "--filter", "branch=june", "--limit", "1"],
    ["commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    ["commit", "changes", SEEDED],
    ["commit", "changes", SEEDED, "--json", "--kind", "node", "--limit", "2"],
    ["commit", "changes", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--json"],
    ["ingest", "--data", "more.jsonl"],
    [
        "ingest",
        "--data",
        "more.jsonl",
        "--branch",
        "ingested",
        "--from",
        "june",
        "--mode",
        "append",
        "--json",
    ],
    ["alias", "craft", "VGR-1"],
    ["query", "--alias", "craft", "VGR-2", "--json"],
    ["mutate", "--alias", "named", "VGR-2", "Second", "--json"],
    ["alias", "craft", "VGR-2"],
    ["alias", "moon"],
    ["describe", "Craft"],
    ["describe", "Flew", "--branch", "june", "--json"],
    ["describe", "Moon"],
    ["explain", "-e", EVERY_CRAFT],
    ["explain", "crafts", "--query", "crafts.gq", "--json"],
    ["explain", "--query", "crafts.gq", "--json"],
    ["changes", "poll", "--start", "beginning", "--limit", "3"],
    ["changes", "poll", "--start", "beginning", "--json"],
    ["diff", "june", "main"],
    ["diff", "june", "--stat", "--json"],
    ["schema", "show", "--branch", "june"],
    ["schema", "apply", "--schema", "wider.pg", "--json"],
    ["schema", "apply", "--schema", "wider.pg"],
    ["load", "--data", "docs.jsonl", "--mode", "append", "--json"],
    ["blob", "get", "node", "Doc", "D-1", "scan"],
    ["blob", "get", "node", "Doc", "D-1", "scan", "--offset", "4", "--length", "3"],
    ["blob", "get", "node", "Doc", "D-2", "scan"],
    ["blob", "stat", "node", "Doc", "D-1", "scan"],
    ["blob", "stat", "node", "Doc", "D-1", "scan", "--json"],
    ["blob", "stat", "node", "Doc", "D-3", "scan", "--json"],
    ["describe", "Doc", "--json"],
    ["branch", "merge", "june", "--dry-run", "--json", "--quiet"],
    ["branch", "merge", "june", "--json", "--quiet"],
    [*MUTATE, "rename", "--branch", "review/july", "--params", '{"code": "VGR-1", "name": "July"}'],
    ["branch", "merge", "review/july", "--json", "--quiet"],
    ["export", "--type", "Craft"],
    ["import", "--data", "more.jsonl", "--branch", "loaded", "--yes", "--json"],
    ["branch", "delete", "loaded", "--yes", "--json"],
    ["branch", "delete", "main", "--yes"],
    ["branch", "list"],
]


def place_journey(folder: Path) -> Path:
    """Put what the journey needs into a folder, and return the graph; aliases reach it at its place."""
    graph = place_atlas(folder)
    place_aliases(folder, GRAPH)
    write(folder, "crafts.gq", CRAFTS)
    doc = {"type": "Doc", "data": {"code": "D-1", "scan": f"base64:{b64encode(b'ten of ten').decode()}"}}
    write(folder, "docs.jsonl", lines(doc, {"type": "Doc", "data": {"code": "D-2"}}))
    write(folder, "atlas.gq", MUTATIONS)
    write(folder, "more.jsonl", lines(craft("MSL-1", mass_kg=900.0), craft("INS-1")))
    wider = (folder / "atlas.pg").read_text().replace("seat: I32?", "seat: I32?\n    row: I32?")
    write(folder, "wider.pg", wider + DOC)
    return graph


def place_aliases(folder: Path, uri: str) -> None:
    """Put a project file into a folder, whose aliases are queries of the graph at an address."""
    write(folder, "omnigraph.yaml", PROJECT.replace("URI", uri))


def steps(folder: Path, *address: str) -> list[list[str]]:
    """Return the commands of the journey with the address of a graph; an alias has its own."""
    seeded = head(folder)
    return [
        [seeded if word == SEEDED else word for word in words]
        + ([] if "alias" in words or "--alias" in words else list(address))
        for words in JOURNEY
    ]


def told(outcome: Outcome) -> Outcome:
    """Return what a command printed without ids, times and places."""
    stdout, stderr = outcome.stdout, outcome.stderr
    for pattern, word in VARYING:
        stdout, stderr = pattern.sub(word, stdout), pattern.sub(word, stderr)
    return Outcome(outcome.code, stdout, stderr)
