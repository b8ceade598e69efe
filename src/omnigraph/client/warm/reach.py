"""Finding the warm server of a graph, and asking whether it may be used.

R1  Nothing is sent to anybody but a process of this user (W1, W2).
R2  A server of another version or with other settings, or of another graph at this place, is not used.
R3  Whatever stands in the way is no error: the command opens the graph itself.
"""

import os
import socket
from dataclasses import dataclass
from typing import Any

from omnigraph import __version__
from omnigraph.client.warm.link import Link, PeerGone
from omnigraph.client.warm.place import WarmPlace, peer_pid, require_own_peer
from omnigraph.client.warm.settings import digest_of_settings

HELLO_WAIT_S = 5.0  # a server that has not said a word by then is stopped, or has too much to do


@dataclass(frozen=True, slots=True)
class Met:
    """A server that answered: the connection, which process it is, and what it said."""

    link: Link
    pid: int
    words: dict[str, Any]


def find_server(root: str) -> Link | None:
    """Return a connection to the warm server of a graph that may be asked; None if there is none (R1-R3)."""
    try:
        met = meet(WarmPlace.of(root), "call")
    except (OSError, PeerGone):
        return None
    if met.words.get("ready") is True:
        return met.link
    met.link.close()
    return None


def meet(place: WarmPlace, ask: str) -> Met:
    """Connect to the server at a place, say who is asking for what, and return its first words.

    Raises:
        OSError: nobody listens, or it is not to be trusted (R1).
        PeerGone: it does not answer.
    """
    reason = place.distrust(os.geteuid())
    if reason is not None:
        raise PermissionError(reason)
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link = Link(end)
    try:
        link.wait_at_most(HELLO_WAIT_S)
        end.connect(str(place.socket))
        require_own_peer(end)
        link.say(ask=ask, version=__version__, settings=digest_of_settings(), root=place.root)
        words = link.hear()
        link.wait_at_most(None)
    except BaseException:
        link.close()
        raise
    return Met(link, peer_pid(end), words)
