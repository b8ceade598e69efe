"""What every test may rely on."""

import os
import signal
from collections.abc import Iterator

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


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the cache and the configuration of whoever runs the tests out of every process of a test."""
    with pytest.MonkeyPatch.context() as patch:
        if "OMNIGRAPH_CACHE_DIR" not in os.environ:
            patch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("OMNIGRAPH_HOME", str(tmp_path_factory.mktemp("home")))
        for name in ("OMNIGRAPH_CONFIG", "OMNIGRAPH_PROFILE", "OMNIGRAPH_BEARER_TOKEN"):
            patch.delenv(name, raising=False)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--accept``."""
    parser.addoption(
        "--accept",
        action="store_true",
        help="write what the tests of expectations and generated pages got as what they expect",
    )
