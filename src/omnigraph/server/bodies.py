"""Reading a body: of the right type, up to a limit, and only as long as it keeps coming.

B1  A body over the limit is refused by its Content-Length if it has one, and otherwise as soon as it passes
    the limit; no more of it than that is ever held, in memory or in a file.
B2  A body that stops coming, or comes too slowly, is refused; a sender cannot hold a place open.
B3  JSON is read strictly: valid text, one value for each member, nesting and digits that end.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from omnigraph.core.errors import BadRequest, ResourceLimit
from omnigraph.core.values import read_strict_json
from omnigraph.server.refusal import BODY_IS_BROKEN, malformed, too_slow, unsupported_type

JSON_TYPE = "application/json"
_UNPACKED = {"", "identity", "chunked"}
_DIGITS_MAX = 32  # of a length that is compared with a limit; the rest makes it larger still
BYTES_PER_SECOND_LEAST = 16 * 1024  # slower than any line that a server is called over

Model = TypeVar("Model", bound=BaseModel)


def require_type(request: Request, wanted: str, what: str) -> None:
    """Refuse a body of another type, or one that is packed.

    Raises:
        Refusal: 415.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != wanted:
        raise unsupported_type(f"{what} needs Content-Type {wanted}")
    packings = [*request.headers.getlist("content-encoding"), *request.headers.getlist("transfer-encoding")]
    if any(packing.strip().lower() not in _UNPACKED for packing in packings):
        raise unsupported_type(f"{what} takes no packed body: leave Content-Encoding out")


async def read_body(request: Request, *, limit: int, setting: str | None, wait_s: int) -> bytes:
    """Return the whole body, as `body_pieces` yields it."""
    body = bytearray()
    async for piece in body_pieces(request, limit=limit, setting=setting, wait_s=wait_s):
        body += piece
    return bytes(body)


async def body_pieces(
    request: Request, *, limit: int, setting: str | None, wait_s: int
) -> AsyncIterator[bytes]:
    """Yield a body as it arrives (B1, B2); the sender waits for whoever takes the pieces.

    Raises:
        ResourceLimit: it is over the limit.
        Refusal: it does not keep coming, or is not HTTP.
        ClientDisconnect: the sender has gone.
    """
    _check_size(_announced(request), limit, setting)
    loop, size, has_more = asyncio.get_running_loop(), 0, True
    started = loop.time()
    while has_more:
        allowed_s = wait_s + size / BYTES_PER_SECOND_LEAST
        try:
            async with asyncio.timeout_at(started + allowed_s):
                message = await request.receive()
        except TimeoutError:
            raise too_slow(loop.time() - started) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if BODY_IS_BROKEN in request.scope.get("state", ()):
            raise malformed("body")
        piece = message.get("body", b"")
        size += len(piece)
        _check_size(size, limit, setting)
        has_more = message.get("more_body", False)
        taken = loop.time()
        yield piece
        started += loop.time() - taken  # what the taker needs is not the sender's time


def read_json_body(body: bytes, model: type[Model], *, may_be_absent: bool = False) -> Model:
    """Return a body as a value (B3).

    Raises:
        BadRequest: it is not JSON, or not what the route takes; the text names the field.
    """
    if may_be_absent and not body.strip():
        return model()
    try:
        document = read_strict_json(body)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {_reason(error)}") from error
    if may_be_absent and document is None:
        return model()
    if not isinstance(document, dict):
        raise BadRequest("the body must be a JSON object")
    return validated(model, document, "the body")


def read_query(request: Request, model: type[Model]) -> Model:
    """Return a query string as a value; a parameter that takes one value may be given once.

    Raises:
        BadRequest: a parameter is wrong, missing or repeated; or unknown, where a route takes no others.
    """
    lists = {_name(field, info.alias) for field, info in model.model_fields.items() if _is_list(info)}
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise BadRequest(f"parameter '{name}' is given twice")
        else:
            given[name] = value
    return validated(model, given, "the query string")


def validated(model: type[Model], document: dict[str, Any], what: str) -> Model:
    """Return a document as a value.

    Raises:
        BadRequest: it does not fit; the text names the first field that is wrong.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise BadRequest(f"{what}: {_first(error.errors(include_url=False, include_input=False))}") from None


def _announced(request: Request) -> int:
    text = request.headers.get("content-length", "")
    return int(text[:_DIGITS_MAX]) if text.isascii() and text.isdecimal() else 0


def _check_size(size: int, limit: int, setting: str | None) -> None:
    if size > limit:
        raise ResourceLimit(resource="request body in bytes", limit=limit, actual=size, setting=setting)


def _first(errors: Sequence[Any]) -> str:
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"'{place}' is missing"
    text = str(first["msg"]).removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    return f"'{place}': {text}" if place else text


def _reason(error: ValueError) -> str:
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def _name(field: str, alias: str | None) -> str:
    return alias or field


def _is_list(info: Any) -> bool:  # noqa: ANN401 - a field of pydantic's
    return "list" in str(info.annotation)
