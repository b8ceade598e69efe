"""What is imported when, and what someone is told who has not installed a framework."""

import subprocess
import sys
from importlib import import_module

import pytest

from omnigraph import UnsupportedError

LEAN = """
import sys, pkgutil, importlib
import omnigraph.agents
for module in pkgutil.iter_modules(omnigraph.agents.__path__):
    if not module.ispkg:
        importlib.import_module(f"omnigraph.agents.{module.name}")
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"langchain_core", "llama_index", "langsmith"}))
"""


@pytest.mark.case("surfaces", 751)
@pytest.mark.parametrize(
    ("package", "library", "extra"),
    [("langchain", "langchain_core", "langchain"), ("llamaindex", "llama_index.core", "llamaindex")],
)
def test_a_missing_framework_is_named_with_its_extra(
    package: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(f"omnigraph.agents.{package}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(
        UnsupportedError, match=rf"{library} is not installed: pip install 'omnigraph\[{extra}\]'"
    ):
        import_module(f"omnigraph.agents.{package}")


@pytest.mark.case("surfaces", 751)
def test_what_both_share_imports_neither_framework() -> None:
    ended = subprocess.run([sys.executable, "-c", LEAN], capture_output=True, check=True, text=True)

    assert ended.stdout == "[]\n"
