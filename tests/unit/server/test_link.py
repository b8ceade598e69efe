"""What ends of a warm connection make of words that nobody understands."""

import socket
import struct

import pytest

from omnigraph.client.warm.link import Link, PeerGone


def test_words_that_nest_without_end_are_no_words() -> None:
    one, other = socket.socketpair()
    nested = b"[" * 60_000
    with one, other:
        one.sendall(struct.pack(">Q", len(nested)) + nested)

        with pytest.raises(PeerGone, match="not JSON"):
            Link(other).hear()
