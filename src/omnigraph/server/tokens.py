"""Who may call: bearer tokens, of which only digests are kept.

K1  The plaintext of a token does not outlive the reading of its source.
K2  A presented token is compared with every digest, each in constant time: how long it takes says nothing.
K3  The actor is the one that is configured for the token. Nothing in a request can change it.
"""

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from omnigraph.core.access_errors import AuthenticationError
from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import BEARER_TOKEN_BYTES_MAX
from omnigraph.core.regular_file import open_regular
from omnigraph.core.values import read_strict_json
from omnigraph.operations.context import check_actor

ONE_TOKEN = "OMNIGRAPH_SERVER_BEARER_TOKEN"  # noqa: S105 - the name of a variable
TOKENS_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
TOKENS_JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
AWS_SECRET = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"  # noqa: S105 - the name of a variable
TOKEN_SOURCES = frozenset({ONE_TOKEN, TOKENS_FILE, TOKENS_JSON, AWS_SECRET})
DEFAULT_ACTOR = "default"


TOKENS_FILE_BYTES_MAX = 1024 * 1024  # thousands of actors


@dataclass(frozen=True, slots=True)
class TokenDigests:
    """Digests with their actors; shows neither."""

    _digests: tuple[tuple[bytes, str], ...] = field(default=(), repr=False)

    @staticmethod
    def of(pairs: Iterable[tuple[str, str]]) -> "TokenDigests":
        """Take pairs of actor and token (K1).

        Raises:
            BadRequest: an actor or a token is blank or given twice, or no actor may be called so.
        """
        digests: dict[bytes, str] = {}
        actors: set[str] = set()
        for given_actor, given_token in pairs:
            actor, token = given_actor.strip(), given_token.strip()
            if not token:
                raise BadRequest(f"the token of actor '{actor}' is blank")
            check_actor(actor)
            try:
                digest = _digest(token.encode())
            except UnicodeEncodeError:  # bytes of the environment that are no text
                raise BadRequest(f"the token of actor '{actor}' is not UTF-8") from None
            if actor in actors:
                raise BadRequest(f"actor '{actor}' has two tokens: give each actor one")
            if digest in digests:
                raise BadRequest(f"actors '{digests[digest]}' and '{actor}' have the same token")
            actors.add(actor)
            digests[digest] = actor
        return TokenDigests(tuple(digests.items()))

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return bool(self._digests)

    def actor_of(self, header: bytes | None) -> str:
        """Return whose token an Authorization header carries (K2, K3).

        Raises:
            AuthenticationError: it carries none, or an unknown one.
        """
        scheme, _, token = (header or b"").strip().partition(b" ")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token:
            raise AuthenticationError("missing bearer token")
        presented = _digest(token[: BEARER_TOKEN_BYTES_MAX + 1])
        found = None
        for digest, actor in self._digests:
            if hmac.compare_digest(digest, presented):
                found = actor
        if found is None or len(token) > BEARER_TOKEN_BYTES_MAX:
            raise AuthenticationError("invalid bearer token")
        return found


def tokens_from_environment(given: Mapping[str, str] | None = None) -> TokenDigests:
    """Return the tokens that the environment names.

    Raises:
        BadRequest: a source cannot be read, or what it says cannot be used.
    """
    environment = os.environ if given is None else given
    if environment.get(AWS_SECRET):
        raise BadRequest(
            f"{AWS_SECRET} needs a client of AWS Secrets Manager, which this build is without:"
            f" write the secret to a file and name it in {TOKENS_FILE}"
        )
    pairs: list[tuple[str, str]] = []
    if ONE_TOKEN in environment:
        pairs.append((DEFAULT_ACTOR, environment[ONE_TOKEN]))
    if environment.get(TOKENS_FILE):
        pairs += _pairs(_content(environment[TOKENS_FILE]), TOKENS_FILE)
    elif environment.get(TOKENS_JSON):
        pairs += _pairs(os.fsencode(environment[TOKENS_JSON]), TOKENS_JSON)
    return TokenDigests.of(pairs)


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _content(path: str) -> bytes:
    try:
        with open_regular(path) as file:
            content = file.read(TOKENS_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise BadRequest(f"{TOKENS_FILE}: cannot read {path}: {error.strerror or error}") from error
    if len(content) > TOKENS_FILE_BYTES_MAX:
        raise BadRequest(f"{TOKENS_FILE}: {path} has more than {TOKENS_FILE_BYTES_MAX} bytes")
    return content


def _pairs(text: bytes, source: str) -> list[tuple[str, str]]:
    """Return the pairs of a JSON object; no message shows any of the text, which has tokens in it."""
    try:
        found = read_strict_json(text)
    except ValueError:
        raise BadRequest(f"{source} is not JSON: it must be an object of actors and their tokens") from None
    if not isinstance(found, dict) or not all(isinstance(token, str) for token in found.values()):
        raise BadRequest(f"{source} must be a JSON object of actors and their tokens")
    return list(found.items())
