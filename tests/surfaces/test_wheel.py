"""The archives that `make wheel` builds hold the package and work where nothing else of the checkout is."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email import message_from_string
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from omnigraph import __version__
from tests.support.commands import Outcome, run
from tests.support.imported import third_party_imports
from tests.support.page_run import Typed, masked, printed_below, run_page
from tests.support.pages import REPOSITORY, Block

PACKAGE = REPOSITORY / "src" / "omnigraph"
README = REPOSITORY / "README.md"
BANK = REPOSITORY / "examples" / "seedbank"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both archives without a network, as `make wheel` does, and return their folder."""
    folder = tmp_path_factory.mktemp("dist")
    checked("-m", "build", "--no-isolation", "--outdir", str(folder), cwd=REPOSITORY)
    return folder


@pytest.fixture(scope="module")
def installed(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel, and only it, into a folder of its own."""
    (wheel,) = archives.glob("*.whl")
    target = tmp_path_factory.mktemp("site")
    flags = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    checked("-m", "pip", "install", "--quiet", *flags, "--target", str(target), str(wheel), cwd=archives)
    return target


@pytest.fixture(scope="module")
def environment(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a fresh virtual environment with the wheel in it.

    Libraries come from where these tests have theirs, since there is no network; of that folder nothing else
    counts, so the package of the checkout is not found there.
    """
    (wheel,) = archives.glob("*.whl")
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder, symlinks=True)
    there = ["--python", str(folder / "bin" / "python")]
    flags = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    checked("-m", "pip", *there, "install", "--quiet", *flags, str(wheel), cwd=archives)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def in_environment(environment: Path, command: str, folder: Path) -> Outcome:
    """Type a command where the programs of an environment come first."""
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return run(["sh", "-euc", command], cwd=folder, PATH=path)


def checked(*arguments: str, cwd: Path, **variables: str) -> str:
    """Run the interpreter, and return what it prints."""
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        check=False,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def omnigraph(*arguments: str, installed: Path, cwd: Path) -> str:
    """Run the installed package.

    -S leaves out the path file of the checkout; the libraries it needs come from the list of paths.
    """
    paths = os.pathsep.join([str(installed), sysconfig.get_path("purelib")])
    return checked("-S", "-m", "omnigraph", *arguments, cwd=cwd, PYTHONPATH=paths)


def test_the_wheel_holds_every_module_and_the_mark_of_its_types(archives: Path) -> None:
    (wheel,) = archives.glob("*.whl")

    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert names == {path.relative_to(PACKAGE.parent).as_posix() for path in files}
    assert "omnigraph/py.typed" in names


def test_the_wheel_names_its_version_license_and_command(archives: Path) -> None:
    (wheel,) = archives.glob("*.whl")

    with zipfile.ZipFile(wheel) as archive:
        metadata = {
            name.rsplit("/", 1)[1]: archive.read(name).decode()
            for name in archive.namelist()
            if ".dist-info/" in name
        }

    assert f"\nVersion: {__version__}\n" in metadata["METADATA"]
    assert "omnigraph = omnigraph.cli.main:main" in metadata["entry_points.txt"]
    assert "omnigraph-server = omnigraph.cli.server_program:main" in metadata["entry_points.txt"]
    assert metadata["LICENSE"] == (REPOSITORY / "LICENSE").read_text()


@pytest.mark.case("surfaces", 659)
def test_the_wheel_requires_every_library_that_the_package_imports(archives: Path) -> None:
    (wheel,) = archives.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_string(archive.read(name).decode())
    required = {canonicalize_name(Requirement(line).name) for line in metadata.get_all("Requires-Dist", [])}
    owners = packages_distributions()

    imported = third_party_imports(PACKAGE)

    missing = {
        module: file
        for module, file in imported.items()
        if not required & {canonicalize_name(owner) for owner in owners.get(module.partition(".")[0], ())}
    }
    assert len(imported) > 20
    assert missing == {}, "imported, and neither a dependency nor in an extra"


def test_the_source_archive_holds_the_package_and_no_tests(archives: Path) -> None:
    (sdist,) = archives.glob("*.tar.gz")

    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}

    tops = {name.split("/", 1)[0] for name in names}
    assert tops == {"src", "pyproject.toml", "README.md", "LICENSE", "PKG-INFO", ".gitignore"}
    assert {
        name for name in names if name.startswith("src/") and not name.startswith("src/omnigraph/")
    } == set()
    assert "src/omnigraph/py.typed" in names


def test_the_installed_package_is_the_one_that_runs(installed: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(installed), sysconfig.get_path("purelib")])

    where = checked("-S", "-c", "import omnigraph; print(omnigraph.__file__)", cwd=tmp_path, PYTHONPATH=paths)

    assert Path(where.strip()) == installed / "omnigraph" / "__init__.py"


def test_the_installed_package_tells_its_version_from_any_folder(installed: Path, tmp_path: Path) -> None:
    said = omnigraph("version", installed=installed, cwd=tmp_path)

    assert said == f"omnigraph {__version__}\ninternal-schema 4\n"


def test_the_installed_package_lints_the_example_from_any_folder(installed: Path, tmp_path: Path) -> None:
    files = ["--schema", str(BANK / "schema.pg"), "--query", str(BANK / "queries")]

    said = omnigraph("lint", *files, installed=installed, cwd=tmp_path)

    assert said.endswith(": 0 errors, 0 warnings\n")


def test_the_installed_command_stands_beside_the_package(installed: Path, tmp_path: Path) -> None:
    script = (installed / "bin" / "omnigraph").read_text()
    server = (installed / "bin" / "omnigraph-server").read_text()

    assert "omnigraph.cli.main" in script
    assert "omnigraph.cli.server_program" in server


def test_every_program_of_a_fresh_environment_tells_its_version(environment: Path, tmp_path: Path) -> None:
    version = f"omnigraph {__version__}\ninternal-schema 4\n"

    said = {
        "omnigraph version": in_environment(environment, "omnigraph version", tmp_path),
        "omnigraph server --version": in_environment(environment, "omnigraph server --version", tmp_path),
        "omnigraph-server --version": in_environment(environment, "omnigraph-server --version", tmp_path),
        "python -m omnigraph version": in_environment(environment, "python -m omnigraph version", tmp_path),
    }

    assert {command: outcome.code for command, outcome in said.items()} == dict.fromkeys(said, 0)
    assert said["omnigraph version"].stdout == said["python -m omnigraph version"].stdout == version
    assert __version__ in said["omnigraph-server --version"].stdout


def test_the_sixty_seconds_work_in_a_fresh_environment_as_printed(environment: Path, tmp_path: Path) -> None:
    def typing(command: str, folder: Path) -> Typed:
        return Typed(command, in_environment(environment, command, folder))

    def running(block: Block, folder: Path, _names: dict[str, object]) -> str:
        ended = run([str(environment / "bin" / "python"), "-c", block.text], cwd=folder)
        assert ended.code == 0, ended
        return ended.stdout

    transcript = run_page(README, tmp_path, lambda block: not block.info, typing=typing, running=running)

    assert [typed for typed in transcript.typed if typed.outcome.code != 0] == []
    assert len(transcript.typed) > 10
    assert len(transcript.programs) == 1
    for commands, shown in transcript.shown:
        printed = printed_below(transcript.commands[commands], shown.text)
        assert masked(shown.text) == masked(printed), str(shown)
