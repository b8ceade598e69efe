"""What the page about deploying tells other programs to run exists: flags, variables, programs, places.

Units, images and the proxy's configuration are read as those programs read them, as far as they are ours.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from click import Context, UsageError

from omnigraph.cli.commands.server import server
from omnigraph.cli.main import omnigraph
from omnigraph.server.settings import Bind, ServerLimits
from tests.support.named_things import words_of
from tests.support.pages import DOCS, REPOSITORY, Block, blocks

PAGE = DOCS / "guide" / "deploying.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = list(blocks(PAGE))
OF_PYTHON = {"TMPDIR"}
SCRIPTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]


def only(language: str) -> Block:
    (found,) = (block for block in BLOCKS if block.language == language)
    return found


def unit_lines() -> Iterator[tuple[str, str]]:
    """Yield the settings of every unit; a line is a section, a setting, or nothing."""
    for block in BLOCKS:
        for line in block.text.splitlines() if block.language == "ini" else ():
            if line and not re.fullmatch(r"\[(Unit|Service|Install)\]", line):
                name, equals, value = line.partition("=")
                assert equals, line
                assert name.isalpha(), line
                yield name, value


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the image with what they take."""
    lines = only("dockerfile").text.replace("\\\n", " ").splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def of_image(instruction: str) -> str:
    (found,) = (rest for word, rest in instructions() if word == instruction)
    return found


def docker_runs() -> Iterator[list[str]]:
    for block in BLOCKS:
        for line in block.text.replace("\\\n", " ").splitlines() if block.language == "sh" else ():
            if line.startswith("docker run"):
                yield shlex.split(line)


def started() -> list[list[str]]:
    """Return every command line of a server that the page has something start."""
    units = [shlex.split(value) for name, value in unit_lines() if name == "ExecStart" and value]
    entry: list[str] = json.loads(of_image("ENTRYPOINT"))
    images = [[*entry, *json.loads(of_image("CMD"))]]
    images += [[*entry, *words[words.index("omnigraph") + 1 :]] for words in docker_runs()]
    typed = [
        shlex.split(re.sub(r"^(\w+=\S+ )+", "", line))
        for block in BLOCKS
        for line in (block.text.splitlines() if block.language == "sh" else ())
        if "omnigraph-server " in line
    ]
    return units + images + typed


def parsed(arguments: list[str]) -> dict[str, Any]:
    """Return what the program makes of arguments; without its context, the command's help would change."""
    program = Context(omnigraph, **omnigraph.context_settings)
    with server.make_context("omnigraph-server", arguments, program) as context:
        return context.params


@pytest.mark.parametrize("words", started(), ids=shlex.join)
def test_every_server_is_started_with_arguments_that_it_takes(words: list[str]) -> None:
    program, *arguments = words

    given = parsed(arguments)

    assert program.rpartition("/")[2] in SCRIPTS
    assert given["uri"]
    if given["bind"] is not None:
        assert Bind.parse(given["bind"])


def test_an_argument_that_a_server_does_not_take_would_be_noticed() -> None:
    with pytest.raises(UsageError):
        parsed(["g.omni", "--unheard-of"])


def test_every_variable_is_one_that_the_program_reads() -> None:
    set_by_units = {value.partition("=")[0] for name, value in unit_lines() if name == "Environment"}
    set_by_image = {name for name, _ in re.findall(r"(\w+)=(\S+)", of_image("ENV"))}
    by_docker = {
        word.partition("=")[0] for run in docker_runs() for word in run if re.match(r"[A-Z_]+=", word)
    }
    named = set(re.findall(r"\b(?:OMNIGRAPH|AWS)_[A-Z0-9_]*[A-Z0-9]\b", TEXT))

    read = words_of([REPOSITORY / "src"]) | OF_PYTHON

    assert min(map(len, (set_by_units, set_by_image, by_docker))) > 0
    assert (set_by_units | set_by_image | by_docker | named) - read == set()


def test_what_a_unit_names_is_given_to_it() -> None:
    settings = list(unit_lines())
    handed = {value.partition(":")[0] for name, value in settings if name == "LoadCredential"}

    taken = {found for _, value in settings for found in re.findall(r"%d/(\w+)", value)}

    assert taken == handed != set()
    (wait,) = (int(value) for name, value in settings if name == "TimeoutStopSec")
    assert wait > ServerLimits().drain_wait_s


def test_the_image_holds_the_wheel_of_a_checkout_and_its_user_can_read_what_is_mounted() -> None:
    steps = of_image("RUN")
    (user,) = re.findall(r"useradd .*--uid (\d+) (\w+)", steps)
    variables = dict(re.findall(r"(\w+)=(\S+)", of_image("ENV")))
    (run,) = docker_runs()
    mounts = [word for before, word in pairwise(run) if before == "-v"]

    assert of_image("COPY").split()[0] == "dist/*.whl"
    assert "--outdir dist" in (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"pip install \S+ /tmp/\*\.whl", steps)
    assert of_image("USER") == user[1]
    owners = set(re.findall(r"^(?:install -o|chown -R) (\d+)", TEXT, re.MULTILINE))
    assert owners == {user[0]}
    tokens = dict(word.split("=") for word in run if "TOKENS_FILE=" in word).popitem()[1]
    assert [mount.split(":")[1] for mount in mounts if mount.split(":")[1] == tokens] == [tokens]
    installed = re.findall(r"^install .* (\S+)$", TEXT, re.MULTILINE)
    assert installed == [mount.split(":")[0] for mount in mounts if mount.split(":")[1] == tokens]
    assert Bind.parse(variables["OMNIGRAPH_BIND"]).port == int(of_image("EXPOSE"))
    assert int(run[run.index("--stop-timeout") + 1]) > ServerLimits().drain_wait_s
    scratch = variables["TMPDIR"]
    assert variables["OMNIGRAPH_CACHE_DIR"].startswith(f"{scratch}/")
    assert scratch in {mount.split(":")[1] for mount in mounts}, "exports need more room than memory has"


def test_the_proxy_passes_paths_on_as_they_come_and_has_the_limits_of_the_server() -> None:
    lines = [line.partition("#")[0].strip() for line in only("nginx").text.splitlines()]
    directives = dict(line.removesuffix(";").split(None, 1) for line in lines if line.endswith(";"))

    assert all(line.endswith((";", "{", "}")) for line in lines if line)
    assert sum(line.count("{") - line.count("}") for line in lines) == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", directives["proxy_pass"]), "a path would be decoded"
    limits = ServerLimits()
    assert directives["client_max_body_size"] == f"{limits.load_body_bytes >> 20}m"
    assert directives["client_header_timeout"] == f"{limits.body_wait_s}s"
    assert directives["proxy_buffering"] == directives["proxy_request_buffering"] == "off"
