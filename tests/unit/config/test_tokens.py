"""Tokens: which one goes where, and the file that keeps them."""

from pathlib import Path

import pytest

from omnigraph.config.credentials import (
    check_token,
    read_token,
    remove_token,
    write_token,
)
from omnigraph.config.server_url import ServerUrl
from omnigraph.config.tokens import token_for
from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import BEARER_TOKEN_BYTES_MAX

SERVERS = {
    "lab": ServerUrl.parse("https://graph.lab.example"),
    "lab-two": ServerUrl.parse("https://graph.lab.example/two"),
    "here": ServerUrl.parse("http://127.0.0.1:8080"),
}


def token(url: str, folder: Path, *, project: str | None = None, **variables: str) -> str | None:
    return token_for(
        ServerUrl.parse(url),
        servers=SERVERS,
        credentials=folder / "credentials",
        variables=variables,
        bearer_token_env=project,
    )


@pytest.mark.case("surfaces", 96)
@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://graph.lab.example", "one"),
        ("https://GRAPH.lab.example:443/graphs/atlas/", "one"),
        ("https://graph.lab.example./graphs/atlas", "one"),
        ("https://graph.lab.example/two", "two"),
        ("https://graph.lab.example/two/graphs/atlas", "two"),
        ("https://graph.lab.example/twofold", "one"),
        ("https://graph.lab.example.evil.example", None),
        ("https://graph.lab.exampl", None),
        ("https://evil.example/graph.lab.example", None),
        ("http://graph.lab.example", None),
        ("https://graph.lab.example:8443", None),
        ("http://127.0.0.1:80801", None),
        ("http://127.0.0.1:8080", "three"),
    ],
)
def test_a_servers_token_never_leaves_it(url: str, found: str | None, tmp_path: Path) -> None:
    variables = {"OMNIGRAPH_TOKEN_LAB": "one", "OMNIGRAPH_TOKEN_LAB_TWO": "two"}
    write_token(tmp_path / "credentials", "here", "three")

    if url.endswith(":80801"):
        with pytest.raises(BadRequest, match="not the address of a server"):
            ServerUrl.parse(url)
        return
    assert token(url, tmp_path, **variables) == found


@pytest.mark.parametrize(
    "url",
    [
        "https://graph.lab.example@evil.example",
        "https://graph.lab.example/two/../one",
        "https://graph.lab.example/two/%2e%2e/one",
        "https://graph.lab.example/a%2Fb",
        "https://graph.lab.example\\@evil.example",
        "https://graph.lab.example//two",
        "https://graph.lab.example?x=1",
        "https://graph.lab.example#two",
        "https://graph.lab.example /x",
        "https://",
        "https://[::1",
        "ftp://graph.lab.example",
        "graph.lab.example",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(BadRequest):
        ServerUrl.parse(url)


def test_the_first_source_wins(tmp_path: Path) -> None:
    url = "https://graph.lab.example/graphs/atlas"
    variables = {"OMNIGRAPH_TOKEN_LAB": "first", "PROJECT": "third", "OMNIGRAPH_BEARER_TOKEN": "last"}

    assert token(url, tmp_path, project="PROJECT", **variables) == "first"
    del variables["OMNIGRAPH_TOKEN_LAB"]
    write_token(tmp_path / "credentials", "lab", "second")
    assert token(url, tmp_path, project="PROJECT", **variables) == "second"
    remove_token(tmp_path / "credentials", "lab")
    assert token(url, tmp_path, project="PROJECT", **variables) == "third"
    variables["PROJECT"] = " "
    assert token(url, tmp_path, project="PROJECT", **variables) == "last"
    del variables["OMNIGRAPH_BEARER_TOKEN"]
    assert token(url, tmp_path, project="PROJECT", **variables) is None


def test_a_token_that_no_header_can_carry_is_named_by_its_variable_alone(tmp_path: Path) -> None:
    with pytest.raises(BadRequest) as error:
        token("https://elsewhere.example", tmp_path, OMNIGRAPH_BEARER_TOKEN="two\nlines")

    assert "OMNIGRAPH_BEARER_TOKEN" in str(error.value)
    assert "lines" not in str(error.value)


def test_a_file_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    write_token(path, "lab", "secret")

    for mode in (0o640, 0o604, 0o644, 0o620):
        path.chmod(mode)
        for use in (read_token, remove_token):
            with pytest.raises(BadRequest, match=f"chmod 600 {path}"):
                use(path, "lab")
    path.chmod(0o600)
    assert read_token(path, "lab") == "secret"


def test_other_lines_of_the_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "below" / "credentials"
    write_token(path, "lab", "one")
    path.write_text(f"# mine\n{path.read_text()}[other]\ntoken = two\n")

    write_token(path, "lab", "three")

    assert path.read_text() == "# mine\n[other]\ntoken = two\n\n[lab]\ntoken = three\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    remove_token(path, "other")
    assert (read_token(path, "other"), read_token(path, "lab")) == (None, "three")
    assert [entry.name for entry in path.parent.iterdir()] == ["credentials"]


@pytest.mark.parametrize("text", ["token = secret\n", "[lab]\nsecret\n", "[lab]\ntoken = se cret\n"])
def test_a_malformed_file_is_named_without_its_contents(text: str, tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    path.write_text(text)
    path.chmod(0o600)

    with pytest.raises(BadRequest) as error:
        read_token(path, "lab")

    assert "cret" not in str(error.value)


def test_a_token_that_no_server_takes_is_refused_and_not_cut() -> None:
    assert check_token("a" * BEARER_TOKEN_BYTES_MAX + "\n") == "a" * BEARER_TOKEN_BYTES_MAX
    with pytest.raises(BadRequest, match="at most 4096 characters"):
        check_token("a" * (BEARER_TOKEN_BYTES_MAX + 1))
