"""What every request goes through before it is routed: an id, an end for every error, a known caller."""

import asyncio
import re
from collections.abc import Iterable

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph.core.ids import UlidSource
from omnigraph.server.access import Access
from omnigraph.server.answers import error_answer
from omnigraph.server.refusal import cut_off
from omnigraph.server.serving import Serving

REQUEST_ID = b"x-request-id"
PUBLIC = frozenset({"/healthz", "/version", "/readyz", "/openapi.json"})
Headers = Iterable[tuple[bytes, bytes]]
_USABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")


class RequestIds:
    """Gives every request an id, the caller's if that can be used, and every answer the same."""

    def __init__(self, app: ASGIApp) -> None:
        """Take what comes next."""
        self.app = app
        self._new_id = UlidSource()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put the id into the state of the request and into the headers of its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = given_id(scope["headers"]) or self._new_id().encode()
        scope.setdefault("state", {})["request_id"] = request_id.decode()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID, request_id)]
            await send(message)

        await self.app(scope, receive, send_with_id)


class Errors:
    """Turns what anything below raises into an answer; nothing is raised beyond it."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        """Take what comes next, and the server whose places no text may show."""
        self.app, self.serving = app, serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an error, unless the answer has begun: then the connection ends, and the body is cut off."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            return  # there is nobody to answer
        except asyncio.CancelledError:  # by the end of the time to drain, and by nothing else
            if has_begun:
                raise
            await error_answer(cut_off(), request_id=scope["state"]["request_id"])(scope, receive, send)
        except Exception as error:
            state = scope["state"]
            hidden = {**self.serving.places, **state.get("hidden", {})}
            answer = error_answer(error, request_id=state["request_id"], hidden=hidden)
            if has_begun:
                raise
            await answer(scope, receive, send)


class Authentication:
    """Finds out who calls, before anything else of a request is looked at."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        """Take what comes next, and the server whose tokens count."""
        self.app, self.serving = app, serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put the actor into the state of the request."""
        if scope["type"] == "http":
            is_free = self.serving.access is Access.OPEN or scope["path"] in PUBLIC
            tokens = self.serving.settings.tokens
            scope["state"]["actor"] = (
                None if is_free else tokens.actor_of(_header(scope["headers"], b"authorization"))
            )
        await self.app(scope, receive, send)


def given_id(headers: Headers) -> bytes | None:
    """Return the id that a caller gave a request, if it can be used."""
    given = _header(headers, REQUEST_ID)
    return given if given and _USABLE_ID.fullmatch(given) else None


def _header(headers: Headers, name: bytes) -> bytes | None:
    values: list[bytes] = [value for key, value in headers if key == name]
    return values[0] if len(values) == 1 else None
