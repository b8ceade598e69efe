"""What every test may rely on."""

import signal

import pytest
from hypothesis import settings

pytest_plugins = ["tests.support.conformance"]

# A run in the background of a shell starts with interrupts ignored, and every process of a test would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A deadline measures the machine and not the code. `make test` repeats the same examples everywhere;
# new ones are the business of `make fuzz`.
settings.register_profile("test", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=2_000)
settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--accept``."""
    parser.addoption(
        "--accept",
        action="store_true",
        help="write what the tests of expectations and generated pages got as what they expect",
    )
