"""Protocol buffers as far as the library's files need reading: numbered values, each a number or bytes."""

from collections.abc import Iterable, Iterator


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and value of each field of a message, in the order they are written.

    Raises:
        ValueError: these are not the bytes of a whole message.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        match key & 7:
            case 0:
                value, at = _varint(message, at)
                yield key >> 3, value
            case 2:
                length, at = _varint(message, at)
                if at + length > len(message):
                    raise ValueError("the message is cut off")
                yield key >> 3, message[at : at + length]
                at += length
            case 1:  # fixed width; none of the fields that are read here
                at += 8
            case 5:
                at += 4
            case other:
                raise ValueError(f"wire type {other}")


def submessage(outer: memoryview, number: int) -> memoryview:
    """Return a message that is a field of another one, as it was written last.

    Raises:
        LookupError: there is no such field.
        ValueError: the field is a number, or the outer message is cut off.
    """
    inner = dict(fields(outer))[number]
    if not isinstance(inner, memoryview):
        raise ValueError("a number where a message was expected")
    return inner


def text(value: int | memoryview) -> str:
    """Return a value that is a text.

    Raises:
        ValueError: it is a number, or not UTF-8.
    """
    if not isinstance(value, memoryview):
        raise ValueError("a number where a text was expected")
    return bytes(value).decode()


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("the message is cut off")


def encode(values: Iterable[tuple[int, int | bytes | memoryview]]) -> bytes:
    """Return a message of numbered values, in the order they are given."""
    out = bytearray()
    for number, value in values:
        if isinstance(value, int):
            out += _encoded(number << 3) + _encoded(value)
        else:
            out += _encoded(number << 3 | 2) + _encoded(len(value)) + value
    return bytes(out)


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
