"""The small graph of the protocol tests, for signals at processes of their own."""

from tests.protocol.conftest import root, template

__all__ = ["root", "template"]
