"""One journey through every command that reaches a graph in more than one way, for comparing the ways."""

import re
from pathlib import Path

from tests.support.atlas import MUTATIONS, craft, lines, place_atlas
from tests.support.commands import Outcome, write

EVERY_CRAFT = (
    "query q() { match { $c: Craft } return { $c.code, $c.mass_kg, $c.launched } order { $c.code } }"
)
VARYING = [
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID"),
    (re.compile(r'("(?:created|authored)_at": )\d+'), r"\1TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r'(cursor"?:? "?)[A-Za-z0-9_=-]{30,}'), r"\1TOKEN"),
    (re.compile(r'(next_page_token": ")[A-Za-z0-9_=-]{30,}'), r"\1TOKEN"),
    (re.compile(r'("id": ")[0-9a-f]{32}"'), r'\1TYPE"'),
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
    ["changes", "poll", "--start", "beginning", "--limit", "3"],
    ["changes", "poll", "--start", "beginning", "--json"],
    ["diff", "june", "main"],
    ["diff", "june", "--stat", "--json"],
    ["schema", "show", "--branch", "june"],
    ["schema", "apply", "--schema", "wider.pg", "--json"],
    ["schema", "apply", "--schema", "wider.pg"],
    ["branch", "merge", "june", "--dry-run", "--json"],
    ["branch", "merge", "june", "--json"],
    [*MUTATE, "rename", "--branch", "review/july", "--params", '{"code": "VGR-1", "name": "July"}'],
    ["branch", "merge", "review/july", "--json"],
    ["export", "--type", "Craft"],
    ["import", "--data", "more.jsonl", "--branch", "loaded", "--yes", "--json"],
    ["branch", "delete", "loaded", "--yes", "--json"],
    ["branch", "delete", "main", "--yes"],
    ["branch", "list"],
]


def place_journey(folder: Path) -> Path:
    """Put what the journey needs into a folder, and return the graph."""
    graph = place_atlas(folder)
    write(folder, "atlas.gq", MUTATIONS)
    write(folder, "more.jsonl", lines(craft("MSL-1", mass_kg=900.0), craft("INS-1")))
    wider = (folder / "atlas.pg").read_text().replace("seat: I32?", "seat: I32?\n    row: I32?")
    write(folder, "wider.pg", wider)
    return graph


def told(outcome: Outcome) -> Outcome:
    """Return what a command printed without ids, times and places."""
    stdout, stderr = outcome.stdout, outcome.stderr
    for pattern, word in VARYING:
        stdout, stderr = pattern.sub(word, stdout), pattern.sub(word, stderr)
    return Outcome(outcome.code, stdout, stderr)
