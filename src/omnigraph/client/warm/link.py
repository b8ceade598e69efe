"""What two ends say to each other: frames of bytes, as JSON until both know that they are the same program.

F1  The first frame of each side is JSON of a few words that every version understands. Only ends of the same
    version and the same settings go on, with values of Python.
F2  A value is read without running anything: of classes, only our own values and errors are known.
F3  `taken` goes out before a call is carried out. Whoever has not seen it knows that nothing was done.
"""

import io
import json
import pickle
import socket
import struct
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

from omnigraph.core.errors import OmnigraphError

HELLO_BYTES_MAX = 64 * 1024
_LENGTH = struct.Struct(">Q")
_PIECE_BYTES = 1 << 20
_HOME = "omnigraph."
_NO_VALUE = (
    pickle.UnpicklingError,
    EOFError,
    ImportError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    MemoryError,
)


class PeerGone(Exception):
    """The other end has closed the connection, or does not answer, or says what nobody understands."""


class Link:
    """One connection, from either end."""

    def __init__(self, end: socket.socket) -> None:
        """Take the connected socket, which is closed with this."""
        self._end = end

    def close(self) -> None:
        """Close the connection."""
        self._end.close()

    def shut(self, *, is_answering: bool) -> None:
        """Take nothing more from the other end, and send it nothing more unless an answer is on its way."""
        try:
            self._end.shutdown(socket.SHUT_RD if is_answering else socket.SHUT_RDWR)
        except OSError:
            return  # closed already

    def wait_at_most(self, seconds: float | None) -> None:
        """Wait for each piece of the other end's words at most so long; None is for ever."""
        self._end.settimeout(seconds)

    def say(self, **words: object) -> None:
        """Send JSON (F1).

        Raises:
            PeerGone: nobody takes it.
        """
        self._send(json.dumps(words).encode())

    def hear(self) -> dict[str, Any]:
        """Return the JSON that the other end says (F1).

        Raises:
            PeerGone: it says nothing, or something else.
        """
        try:
            words = json.loads(self._receive(HELLO_BYTES_MAX))
        except (ValueError, RecursionError) as error:
            raise PeerGone("not JSON") from error
        if not isinstance(words, dict):
            raise PeerGone("not an object")
        return words

    def send(self, value: object) -> None:
        """Send a value.

        Raises:
            PeerGone: nobody takes it.
        """
        self._send(pickle.dumps(value, protocol=5))

    def receive(self) -> Any:  # noqa: ANN401 - whatever was sent
        """Return a value that the other end sent (F2).

        Raises:
            PeerGone: it sent none.
        """
        content = self._receive()
        try:
            return _Values(io.BytesIO(content)).load()
        except _NO_VALUE as error:
            raise PeerGone("no value of ours") from error

    def _send(self, content: bytes) -> None:
        try:
            self._end.sendall(_LENGTH.pack(len(content)) + content)
        except OSError as error:
            raise PeerGone("nobody takes it") from error

    def _receive(self, most: int | None = None) -> bytes:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if most is not None and length > most:
            raise PeerGone("too long")
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        content = bytearray()
        while len(content) < count:
            try:
                piece = self._end.recv(min(count - len(content), _PIECE_BYTES))
            except OSError as error:
                raise PeerGone("no answer") from error
            if not piece:
                raise PeerGone("closed")
            content += piece
        return bytes(content)


class _Values(pickle.Unpickler):
    """Reads values of our own classes, and none of anybody's functions (F2)."""

    def find_class(self, module: str, name: str) -> type:
        """Return a class of ours that is a value or an error.

        Raises:
            UnpicklingError: it is something else.
        """
        found: object = super().find_class(module, name) if module.startswith(_HOME) else None
        if isinstance(found, type) and (is_dataclass(found) or issubclass(found, Enum | OmnigraphError)):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is no value of ours")


def packed(error: OmnigraphError) -> tuple[type[OmnigraphError], tuple[object, ...], dict[str, object]]:
    """Return an error as values: its constructor may want others than it keeps."""
    return type(error), error.args, dict(vars(error))


def unpacked(
    kind: type[OmnigraphError], args: tuple[object, ...], fields: dict[str, object]
) -> OmnigraphError:
    """Return the error that was packed."""
    error = kind.__new__(kind)
    Exception.__init__(error, *args)
    vars(error).update(fields)
    return error
