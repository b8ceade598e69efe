"""Tokens: digests, and whose they are."""

from pathlib import Path

import pytest

from omnigraph.core.access_errors import AuthenticationError
from omnigraph.core.errors import BadRequest
from omnigraph.server.tokens import (
    AWS_SECRET,
    ONE_TOKEN,
    TOKENS_FILE,
    TOKENS_FILE_BYTES_MAX,
    TOKENS_JSON,
    TokenDigests,
    tokens_from_environment,
)


def test_a_token_is_the_whole_of_it() -> None:
    tokens = TokenDigests.of((f"act-{number}", f"token-{number}") for number in range(300))

    assert tokens.actor_of(b"Bearer token-7") == "act-7"
    assert tokens.actor_of(b"bearer   token-299  ") == "act-299"
    for wrong in (b"Bearer token-300", b"Bearer token", b"Bearer token-7x", b"Bearer \xff"):
        with pytest.raises(AuthenticationError, match="invalid"):
            tokens.actor_of(wrong)
    for missing in (None, b"", b"Bearer", b"Basic token-7", b"token-7"):
        with pytest.raises(AuthenticationError, match="missing"):
            tokens.actor_of(missing)


def test_nothing_shows_a_token_or_a_digest() -> None:
    tokens = TokenDigests.of([("act-mira", "very-secret")])

    assert "secret" not in repr(tokens)
    assert repr(tokens) == "TokenDigests()"


def test_sources_are_joined_and_a_file_is_preferred(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text('{"act-file": " one "}', encoding="utf-8")
    given = {ONE_TOKEN: "single", TOKENS_FILE: str(file), TOKENS_JSON: '{"act-json": "two"}'}

    tokens = tokens_from_environment(given)

    assert tokens.actor_of(b"Bearer single") == "default"
    assert tokens.actor_of(b"Bearer one") == "act-file"
    with pytest.raises(AuthenticationError):
        tokens.actor_of(b"Bearer two")
    assert tokens_from_environment({TOKENS_JSON: '{"act-json": "two"}'}).actor_of(b"Bearer two") == "act-json"
    assert not tokens_from_environment({})


@pytest.mark.case("surfaces", 412)
def test_a_source_that_cannot_be_used_is_refused_by_its_name(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (TOKENS_FILE_BYTES_MAX + 1))
    wrong = [
        {TOKENS_FILE: str(tmp_path / "missing")},
        {TOKENS_FILE: str(tmp_path)},
        {TOKENS_FILE: str(large)},
        {TOKENS_JSON: "{"},
        {TOKENS_JSON: '{"act-mira": "\udcff"}'},
        {AWS_SECRET: "arn:aws:x"},
    ]

    for given in wrong:
        (name,) = given
        with pytest.raises(BadRequest, match=name):
            tokens_from_environment(given)
    with pytest.raises(BadRequest, match="the token of actor 'default' is not UTF-8"):
        tokens_from_environment({ONE_TOKEN: "\udcff"})
    with pytest.raises(BadRequest, match="blank"):
        tokens_from_environment({ONE_TOKEN: " "})
