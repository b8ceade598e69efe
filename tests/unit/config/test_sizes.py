"""Files of configuration that are larger than anyone writes, or become so."""

import os
from functools import partial
from pathlib import Path

import pytest

from omnigraph.config.configuration import load_configuration
from omnigraph.config.credentials import read_token
from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import NESTING_MAX, SETTINGS_BYTES_MAX, SETTINGS_NODES_MAX
from omnigraph.policy.model import Policy

ALIAS = "aliases:\n  far:\n    query: a.gq\n    params:\n"
LISTS = "      l0: &l0 [1]\n" + "".join(
    f"      l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "      l0: &l0 { a: 1 }\n" + "".join(
    f"      l{n}: &l{n} {{ <<: [*l{n - 1}, *l{n - 1}] }}\n" for n in range(1, 40)
)
TEXTS = f"      l: &l {'x' * 5000}\n      m: [{', '.join(['*l'] * 6000)}]\n"
ITSELF = "      l: &l [*l]\n"


@pytest.mark.case("surfaces", 410)
@pytest.mark.parametrize("params", [LISTS, MERGES, TEXTS, ITSELF], ids=["lists", "merges", "texts", "itself"])
def test_aliases_that_come_to_too_much_are_refused(tmp_path: Path, params: str) -> None:
    project = tmp_path / "omnigraph.yaml"
    project.write_text(ALIAS + params)

    with pytest.raises(BadRequest) as error:
        load_configuration(str(tmp_path))

    assert str(error.value) == f"{project}: more than {SETTINGS_NODES_MAX} values, with aliases written out"


@pytest.mark.case("surfaces", 763)
@pytest.mark.parametrize(
    ("params", "reason"),
    [
        (f"      l: [{'1,' * SETTINGS_NODES_MAX}1]\n", f"more than {SETTINGS_NODES_MAX} values"),
        (f"      l: {'[' * NESTING_MAX}{']' * NESTING_MAX}\n", f"nested more than {NESTING_MAX} deep"),
        (
            "".join(f"{' ' * n}l:\n" for n in range(6, NESTING_MAX + 8)),
            f"nested more than {NESTING_MAX} deep",
        ),
    ],
    ids=["values", "levels in brackets", "levels by lines"],
)
def test_files_without_an_alias_have_the_same_limits(tmp_path: Path, params: str, reason: str) -> None:
    project = tmp_path / "omnigraph.yaml"
    project.write_text(ALIAS + params)

    with pytest.raises(BadRequest) as error:
        load_configuration(str(tmp_path))
    with pytest.raises(BadRequest) as of_policy:
        Policy.read(project)

    assert str(error.value).startswith(f"{project}: {reason}")
    assert str(of_policy.value) == str(error.value)


@pytest.mark.case("surfaces", 715)
def test_an_alias_of_nothing_is_named(tmp_path: Path) -> None:
    project = tmp_path / "omnigraph.yaml"
    project.write_text("<<: [*x]\n")

    with pytest.raises(BadRequest) as error:
        load_configuration(str(tmp_path))

    assert str(error.value) == f"{project}:1: the alias '*x' stands for nothing above it"


@pytest.mark.case("surfaces", 410)
def test_aliases_that_nest_too_deeply_are_refused(tmp_path: Path) -> None:
    project = tmp_path / "omnigraph.yaml"
    levels = "".join(f"      l{n}: &l{n} [*l{n - 1}]\n" for n in range(1, NESTING_MAX))
    project.write_text(f"{ALIAS}      l0: &l0 [1]\n{levels}")

    with pytest.raises(BadRequest) as error:
        load_configuration(str(tmp_path))

    assert str(error.value) == f"{project}: nested more than {NESTING_MAX} deep"


@pytest.mark.case("surfaces", 410)
def test_aliases_that_stay_small_are_written_out(tmp_path: Path) -> None:
    (tmp_path / "omnigraph.yaml").write_text(f"{ALIAS}      a: &a [1, {{ b: 2 }}]\n      c: [*a, *a]\n")

    found = load_configuration(str(tmp_path)).project

    assert found is not None
    once = [1, {"b": 2}]
    assert found.aliases["far"].params == {"a": once, "c": [once, once]}


@pytest.mark.case("surfaces", 410)
@pytest.mark.parametrize("name", ["omnigraph.yaml", ".env", "credentials"])
def test_a_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "omnigraph.yaml").write_text("auth: { env_file: .env }\n")
    path = tmp_path / name
    path.touch(mode=0o600)
    with path.open("a") as file:
        file.write("#")
    os.truncate(path, SETTINGS_BYTES_MAX + 1)

    read = partial(read_token, path, "lab") if name == "credentials" else load_configuration
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadRequest) as error:
        read()

    assert str(error.value).endswith(f"{name} has more than {SETTINGS_BYTES_MAX} bytes")
