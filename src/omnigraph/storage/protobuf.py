"""Protocol buffers as far as the library's files need reading: numbered values, each a number or bytes."""

from collections.abc import Iterator


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field of a message, in the order they are written.

    Raises:
        ValueError: these are not the bytes of a whole message.
    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, position = _varint(message, position)
            yield number, value
        elif wire_type == 2:
            length, position = _varint(message, position)
            if position + length > len(message):
                raise ValueError("the message is cut off")
            yield number, message[position : position + length]
            position += length
        elif wire_type in {1, 5}:  # fixed width; none of the fields read here
            position += 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"wire type {wire_type}")


def text(value: int | bytes) -> str:
    """Return a value that is a text.

    Raises:
        ValueError: it is a number, or not UTF-8.
    """
    if not isinstance(value, bytes):
        raise ValueError("a number where a text was expected")
    return value.decode()


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while position < len(message):
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("the message is cut off")
