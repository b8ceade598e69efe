"""The README and the pages of the guide do what they show, typed into an empty folder.

`pytest --accept` writes what commands print into the `text` blocks below them.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from omnigraph.cli.main import omnigraph
from tests.support.atlas import commits
from tests.support.commands import PROGRAM, run
from tests.support.in_process import invoke
from tests.support.named_things import spans, targets_of
from tests.support.page_run import (
    NOT_RUN,
    SPARK,
    Transcript,
    accept,
    masked,
    printed_below,
    run_page,
)
from tests.support.pages import DOCS, REPOSITORY, Block, blocks, name_of
from tests.support.shell import statements
from tests.support.spark import spark_session

GUIDE = DOCS / "guide"
README = REPOSITORY / "README.md"
PAGES = [README, *sorted(GUIDE.glob("*.md"))]
BLOCKS = [block for page in PAGES for block in blocks(page)]

# What no test types, by the first command of its block, and why. The pages mark it with `not-run`.
UNTYPED = {
    "omnigraph server ./atlas.omni --unauthenticated": "it serves until it is stopped, as tests do",
    "curl -s localhost:8080/query -H 'Content-Type: application/json' \\": "it asks the server above",
    "curl -N localhost:8080/events": "it follows the server above, and ends with it",
    "omnigraph serve --background ./atlas.omni": "it stays when the page has ended",
    "install -o 10001 -m 0400 tokens.json /etc/omnigraph/tokens-of-container.json": "it needs a container",
    "AWS_REGION=eu-central-1 omnigraph-server s3://lab-bucket/atlas": "it needs a bucket",
    "omnigraph login lab < token.txt": "it asks a server that does not exist",
    "pip install 'omnigraph[langchain]'": "it asks a package index",
    "make setup": "it builds the checkout that it is typed in",
    "make demo": "this and what follows take minutes, and one of them runs this test",
}
# Commands that are there to be refused, and the exit code that the page promises.
REFUSED = {
    "docs/guide/writing-data.md": {"--if-commit": 4},
    "docs/guide/policy.md": {'"VGR-2"': 1},
    "docs/guide/querying.md": {"--params '{}'": 1},
}


def is_quick(block: Block) -> bool:
    """Return whether a block is run with the quick tests."""
    return not block.info


def needs_spark(block: Block) -> bool:
    """Return whether a block is run where there is Spark."""
    return block.info in {"", SPARK}


def shown_on_the_page(page: Path, transcript: Transcript) -> None:
    """Compare the exit codes of a page, and what it shows below its commands."""
    refused = REFUSED.get(name_of(page), {})
    expected = {
        typed.command: next((code for part, code in refused.items() if part in typed.command), 0)
        for typed in transcript.typed
    }
    assert {typed.command: typed.outcome.code for typed in transcript.typed} == expected, transcript.typed
    for commands, shown in transcript.shown:
        printed = printed_below(transcript.commands[commands], shown.text)
        assert masked(shown.text) == masked(printed), str(shown)


@pytest.mark.parametrize("page", [page for page in PAGES if any(map(is_quick, blocks(page)))], ids=name_of)
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    transcript = run_page(page, tmp_path, is_quick)

    if request.config.getoption("--accept"):
        found = {
            shown: printed_below(transcript.commands[typed], shown.text) for typed, shown in transcript.shown
        }
        accept(
            page, {shown.line: text for shown, text in found.items() if masked(text) != masked(shown.text)}
        )
    shown_on_the_page(page, transcript)
    if name_of(page) in CHECKS:
        CHECKS[name_of(page)](transcript)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["files-and-tables.md", "bulk-loading.md"])
def test_a_page_does_what_it_shows_on_spark(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_session()
    # The page imports it for the first time in its process, which registers the format with this session.
    monkeypatch.delitem(sys.modules, "omnigraph.spark", raising=False)

    transcript = run_page(GUIDE / name, tmp_path, needs_spark)

    shown_on_the_page(GUIDE / name, transcript)


@pytest.mark.slow
def test_a_shell_runs_the_readme_as_it_is_printed(tmp_path: Path) -> None:
    """The installed program, and a shell that reads the blocks itself."""
    script = "".join(block.text for block in blocks(README) if block.language == "sh" and not block.info)

    outcome = run(["sh", "-eu"], cwd=tmp_path, stdin=script, PATH=f"{PROGRAM.parent}:/usr/bin:/bin")

    assert (outcome.code, "labels are here" in outcome.stdout) == (0, True)


# What a page promises beyond its commands and their output


def check_readme(found: Transcript) -> None:
    assert "add edge Blocks" in found.of("omnigraph schema plan").stdout
    assert found.of("omnigraph diff").stdout == '~ Task "T-1"  state: "open" => "done"\n'
    assert "labels are here" in found.of("omnigraph commit list").stdout
    (rows,) = found.programs.values()
    assert "T-2  Repair the press" in rows.splitlines()[1]
    assert len(rows.splitlines()) == 2
    misspelt = found.folder / "tasks.gq"
    misspelt.write_text(
        misspelt.read_text(encoding="utf-8").replace("$t.state =", "$t.stat ="), encoding="utf-8"
    )
    asked = ("query", "open_tasks_of", "--query", "tasks.gq", "--params", "{}", "--store", "tasks.omni")
    assert invoke(*asked, cwd=found.folder).stderr == shown_as("README.md", "type error")


def check_schemas(found: Transcript) -> None:
    wrong = found.folder / "archive.pg"
    wrong.write_text(wrong.read_text(encoding="utf-8").replace("code:", "code"), encoding="utf-8")
    told = invoke("fmt", "archive.pg", cwd=found.folder).stderr
    assert told == shown_as("docs/guide/schemas.md", "parse error") + "0 formatted, 0 unchanged, 1 failed\n"


def shown_as(page: str, start: str) -> str:
    """Return the text block of a page that starts so."""
    (found,) = (block.text for block in blocks(REPOSITORY / page) if block.text.startswith(f"{start}:"))
    return found


def check_writing_data(found: Transcript) -> None:
    actors = [commit["actor_id"] for commit in commits(found.folder, graph="radio.omni")]
    assert actors == ["ada", "omnigraph:maintenance", "ada", None]
    (printed,) = (text.splitlines() for text in found.programs.values())
    assert printed[0].startswith("1 ")
    assert printed[1].endswith(" ada None")
    assert printed[3].endswith(" ada first shows")
    assert len(printed) == 4


def check_branches(found: Transcript) -> None:
    assert len(found.shown) == 2
    assert commits(found.folder, graph="radio.omni")[1]["merged_parent_commit_id"] is not None
    assert list(found.programs.values()) == ["fast_forward True 1\n"]


def check_history(found: Transcript) -> None:
    assert len(found.shown) == 1
    (printed,) = (text.splitlines() for text in found.programs.values())
    assert printed[:4] == ["update Show DAWN", "delete Show NITE", "insert Show NOON", "delete Hosts h1"]
    assert printed[4] == "{'code': 'NITE', 'title': 'Night Owls'}"
    assert printed[-1] == "4 0"


def check_querying(found: Transcript) -> None:
    assert len(found.shown) == sum(block.language == "text" for block in blocks(GUIDE / "querying.md"))
    printed, invoked = found.programs.values()
    assert "SB-2015-0009" in invoked
    first, row, names = printed.splitlines()
    assert first.startswith(("['a.code', 'seeds'] ", "('a.code', 'seeds') "))
    assert row.startswith("{'a.code': 'SB-")
    assert names == "['a.code', 'seeds']"


def check_files_and_tables(found: Transcript) -> None:
    copy = found.folder / "copy.omni"
    assert invoke("diff", copy, "main", "main", cwd=found.folder).code == 0
    exported = [invoke("export", place, cwd=found.folder).stdout for place in ("radio.omni", "copy.omni")]
    assert exported[0] == exported[1]
    assert '"Bo Lind"' in exported[0]


def check_agents(found: Transcript) -> None:
    printed = [text.splitlines() for text in found.programs.values() if text]
    assert printed[0][0] == "fern {'page': 4} 0.0"
    assert printed[1] == ["['p2']"]
    assert printed[2] == ["p2 None None", "Ada Wrote 1", "p3 Cites 1"]
    assert printed[3] == ["{'name': 'Ada', 'town': 'Oslo'}"]
    assert printed[4] == ["[{'who': 'Ada Berg', 'where': 'ACME'}]"]
    assert printed[5] == ["thread/session_2f42 ['Where does moss grow?', 'On the north side.']", "0", "2"]
    assert printed[6] == ["['moss']", "[1.0]", "['WORKS_AT']", "['session-42'] Hello"]


CHECKS: dict[str, Callable[[Transcript], None]] = {
    "README.md": check_readme,
    "docs/guide/schemas.md": check_schemas,
    "docs/guide/writing-data.md": check_writing_data,
    "docs/guide/branches-and-merging.md": check_branches,
    "docs/guide/history-and-changes.md": check_history,
    "docs/guide/querying.md": check_querying,
    "docs/guide/files-and-tables.md": check_files_and_tables,
    "docs/guide/agents.md": check_agents,
}


def test_the_error_of_the_page_about_writing_is_the_one_that_is_printed(tmp_path: Path) -> None:
    page = list(blocks(GUIDE / "writing-data.md"))
    run_page(GUIDE / "writing-data.md", tmp_path, lambda _: False)
    assert invoke("init", "radio.omni", "--schema", "radio.pg", cwd=tmp_path).code == 0
    (made,) = (
        text
        for block in page
        if block.language == "sh"
        for text in statements(block.text)
        if text[:4] == "cat "
    )
    wrong = "\n".join(made.splitlines()[1:-1]).replace('"from": "ada"', '"from": "adda"')

    outcome = invoke(
        *("load", "radio.omni", "--data", "-", "--mode", "append", "--quiet"), cwd=tmp_path, stdin=wrong
    )

    shown = next(block.text for block in page if block.language == "text")
    assert (outcome.code, outcome.stderr) == (1, shown)


def test_the_queries_of_the_page_about_querying_are_those_of_the_example() -> None:
    files = sorted((REPOSITORY / "examples" / "seedbank" / "queries").glob("*.gq"))
    text = "".join(file.read_text(encoding="utf-8") for file in files)

    declared = [
        declaration
        for block in blocks(GUIDE / "querying.md")
        if block.language == "gq"
        for declaration in re.split(r"(?<=^}\n)\n", block.text, flags=re.MULTILINE)
    ]

    assert len(declared) >= 20
    assert [declaration for declaration in declared if declaration not in text] == []


@pytest.mark.parametrize(
    "construct",
    [
        *("contains", "starts_with", " < ", ">=", "!=", "date(", "datetime("),
        *("not {", "$_", "<duplicates>", "{1,4}", "$c:"),
        *("count(", "sum(", "avg(", "min(", "max("),
        *("search(", "fuzzy(", "bm25(", "nearest(", "rrf("),
        *(" desc", "limit ", " as "),
    ],
)
def test_the_page_about_querying_shows_every_construct(construct: str) -> None:
    assert any(construct in block.text for block in blocks(GUIDE / "querying.md") if block.language == "gq")


# Nothing escapes


def test_every_block_of_commands_is_typed_or_says_why_not() -> None:
    commands = [block for block in BLOCKS if block.language == "sh"]
    marked = {
        block.text.splitlines()[0].partition("#")[0].strip() for block in commands if block.info == NOT_RUN
    }

    assert len(commands) > 50
    assert {block.info for block in commands} <= {"", SPARK, NOT_RUN}
    assert marked == UNTYPED.keys()


def test_no_command_hides_in_a_block_that_is_not_typed() -> None:
    prompts = re.compile(r"^(?:\$ )?(?:omnigraph|python|make) \S", re.MULTILINE)

    hidden = [
        block for block in BLOCKS if block.language not in {"sh", "python"} and prompts.search(block.text)
    ]

    assert [str(block) for block in hidden] == []


def test_what_is_typed_in_a_checkout_has_a_target() -> None:
    targets = targets_of((REPOSITORY / "Makefile").read_text(encoding="utf-8"))
    lines = [line for block in BLOCKS if block.info == NOT_RUN for line in block.text.splitlines()]
    made = [line.split()[1] for line in lines if line.startswith("make ")]

    assert made == ["setup", "demo", "test"]
    assert set(made) <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_command_in_the_prose_has_its_name_and_its_flags(page: Path) -> None:
    unknown = [span for span in spans(page.read_text(encoding="utf-8")) if is_unknown(span)]

    assert unknown == []


@pytest.mark.parametrize("span", ["omnigraph frob", "omnigraph branch frob x", "omnigraph load --frob"])
def test_an_unknown_command_in_the_prose_is_found(span: str) -> None:
    assert is_unknown(span)


def is_unknown(span: str) -> bool:
    """Return whether inline code is a command of ours with a name or a flag that does not exist."""
    words = span.split()
    if words[0] != "omnigraph" or len(words) < 2:
        return False
    command: click.Command = omnigraph
    context = click.Context(omnigraph)
    for word in words[1:]:
        if not isinstance(command, click.Group) or word.startswith("-"):
            break
        below = command.get_command(context, word)
        if below is None:
            return True
        command, context = below, click.Context(below, parent=context)
    flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    return any(word.split("=")[0] not in flags | {"--help"} for word in words if word.startswith("--"))
