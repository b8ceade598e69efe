"""The table of commands in the specification (surfaces 1.7) against the commands of the program."""

import re
from collections.abc import Iterator

import click
import pytest

from omnigraph.cli.global_flags import SWITCHES, WITH_VALUE
from omnigraph.cli.main import omnigraph
from tests.support.pages import DOCS

SPECIFICATION = (DOCS / "spec" / "surfaces.md").read_text(encoding="utf-8")
CELLS = re.compile(r"(?<!\\)\|")
FLAG = re.compile(r"--[a-z][a-z-]*")
FLAGS_OF = {"explain": "query", "mutate": "query", "ingest": "load"}  # "as query", with what else they have
NOT_BUILT = {
    # clusters
    *(f"cluster {verb}" for verb in ("validate", "import", "plan", "apply", "status", "approve")),
    *("cluster refresh", "cluster force-unlock"),
    *("queries --cluster", "policy --cluster"),
    # writing single blobs, and the program for MCP
    *("blob put", "blob clear", "mcp install", "mcp serve"),
}


def rows() -> dict[str, tuple[list[list[str]], set[str]]]:
    """Return the commands of each row, and the flags that it names; those that it leaves out are not."""
    begin, end = SPECIFICATION.index("### 1.7 Commands"), SPECIFICATION.index("**Shell.**")
    found = {}
    for line in SPECIFICATION[begin:end].splitlines():
        if line.startswith("| `"):
            title, _tier, arguments, *_ = CELLS.split(line.strip("|"))
            said = re.sub(r"without [^;]*", "", arguments)
            flags = set(FLAG.findall(said)) | set(FLAG.findall(title))
            found[title.strip()] = (list(commands(title)), flags)
    return found


def commands(title: str) -> Iterator[list[str]]:
    """Yield the words of each command that the first cell of a row names; other names of one are left out."""
    for text in re.findall(r"`([^`]*)`", re.sub(r"\(.*?\)", "", title)):
        plain = re.sub(r"\[.*?\]|--\S+", " ", text.replace("\\|", "|"))
        words = [word for word in plain.split() if re.fullmatch(r"[a-z][a-z|-]*", word)]
        for last in words[-1].split("|") if words else ():
            yield [*words[:-1], last]


def command_of(words: list[str]) -> click.Command | None:
    """Return the command of these words, or of the first of them where the others are arguments."""
    found: click.Command = omnigraph
    for word in words:
        if not isinstance(found, click.Group):
            return found
        below = found.get_command(click.Context(found), word)
        if below is None:
            return None
        found = below
    return found


def flags_of(command: click.Command) -> set[str]:
    return {flag for item in command.params for flag in (*item.opts, *item.secondary_opts)}


@pytest.mark.case("surfaces", 872)
@pytest.mark.filterwarnings("ignore")
def test_what_the_table_of_commands_names_is_built_or_listed_here() -> None:
    missing = set()
    for named, flags in rows().values():
        built = {" ".join(words): command_of(words) for words in named}
        missing |= {name for name, command in built.items() if command is None}
        have = {flag for command in built.values() if command is not None for flag in flags_of(command)}
        if any(command is not None for command in built.values()):
            missing |= {f"{named[0][0]} {flag}" for flag in flags - have}

    assert missing == NOT_BUILT


@pytest.mark.case("surfaces", 872)
@pytest.mark.parametrize("name", FLAGS_OF)
def test_a_command_that_is_like_another_has_its_flags(name: str) -> None:
    like, other = command_of([name]), command_of([FLAGS_OF[name]])

    assert like is not None
    assert other is not None
    left_out = {"explain": {"--alias", "--format"}, "mutate": {"--format", "--snapshot"}}.get(name, set())
    assert flags_of(other) - flags_of(like) <= left_out | set(SWITCHES) | set(WITH_VALUE)


@pytest.mark.case("surfaces", 872)
def test_every_global_flag_of_the_specification_is_one() -> None:
    begin, end = SPECIFICATION.index("### 1.2 Global flags"), SPECIFICATION.index("### 1.3 Addressing")

    assert set(re.findall(r"^\| `(--[a-z-]+)`", SPECIFICATION[begin:end], re.MULTILINE)) <= {
        *SWITCHES,
        *WITH_VALUE,
    }
