"""The asynchronous twins, written from the classes that they are twins of: one definition, two faces.

What a method of the twin does is decided by its name and by what the method returns:

1)  `WRITES` run to their end once they have begun; everything else is a read.
2)  What returns one of `TWINS` returns the twin of it; an iterator becomes an asynchronous iterator.
3)  A property stays one, unless it does work: then it is a coroutine (`WORKING`).
4)  What a notebook shows is shown of the twin as well, with its name.
"""

import ast
import importlib
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import omnigraph

FOLDER = Path(omnigraph.__file__).parent / "client" / "asynchronous"
WRITES = frozenset(
    [
        "mutate",
        "load",
        "load_tables",
        "load_dataframes",
        "load_networkx",
        "load_objects",
        "embed",
        "invoke",
        "create_branch",
        "delete_branch",
        "merge",
        "apply_schema",
        "upgrade_branch",
        "ensure_indices",
        "rebuild_index",
        "optimize",
        "cleanup",
        "refresh",
        "repair",
    ]
)
READS = frozenset(
    [
        "acting_as",
        "blob",
        "commit_log",
        "duckdb",
        "query",
        "require_load",
        "to_networkx",
        "explain",
        "queries",
        "at",
        "export",
        "table",
        "scan",
        "describe",
        "snapshot",
        "commits",
        "commit",
        "entity_at",
        "diff",
        "commit_changes",
        "commit_changes_page",
        "changes",
        "poll_changes",
        "baseline",
        "branches",
        "branch",
        "catalog",
        "catalog_on",
        "schema",
        "plan_schema",
        "index_status",
        "status",
        "recoveries",
        "verify",
        "events",
        "outcome_of",
        "close",
        "uri",
    ]
)
WORKING = frozenset({"catalog"})
_BLOB = ("kind", "size", "etag", "uri", "commit_id")
FIELDS = {
    "Diff": ("from_snapshot", "to_snapshot"),
    "Baseline": ("snapshot_commit_id",),
    "ScannedRows": ("commit_id", "row_count", "schema"),
    "Blob": _BLOB,
    "RemoteBlob": _BLOB,
}
HEAD = '''"""The asynchronous twins of {what}: written by tests/support/async_source.py.

Do not change this file: `pytest tests/surfaces/client --accept` writes it anew.
"""
'''
EMBEDDED = {
    "omnigraph.graph.graph": ["Graph"],
    "omnigraph.graph.snapshot_view": ["SnapshotView"],
    "omnigraph.operations.blob": ["Blob"],
    "omnigraph.operations.scan": ["ScannedRows"],
    "omnigraph.operations.export": ["Export"],
    "omnigraph.operations.changes.diff": ["Diff"],
    "omnigraph.operations.changes.commit_changes": ["CommitChanges"],
    "omnigraph.operations.changes.feed": ["ChangeFeed"],
    "omnigraph.operations.changes.baseline": ["Baseline"],
}
REMOTE = {
    "omnigraph.client.remote.graph": ["RemoteGraph"],
    "omnigraph.client.remote.snapshot_view": ["RemoteSnapshotView"],
    "omnigraph.client.remote.blob": ["RemoteBlob"],
    "omnigraph.client.remote.pinned": ["RemoteTableRows"],
    "omnigraph.client.remote.streams": ["RemoteExport", "RemoteBaseline"],
    "omnigraph.client.remote.changes": ["RemoteDiff", "RemoteCommitChanges", "RemoteChangeFeed"],
}
FILES = {"embedded.py": ("Graph and what it hands out", EMBEDDED), "remote.py": ("RemoteGraph", REMOTE)}
TWINS = {name for homes in (EMBEDDED, REMOTE) for names in homes.values() for name in names}


def render() -> dict[str, str]:
    """Return the text of each file."""
    return {name: _formatted(_module(what, homes)) for name, (what, homes) in FILES.items()}


def _module(what: str, homes: dict[str, list[str]]) -> str:
    imports, bodies = list[str](), list[str]()
    for home, names in homes.items():
        imports.append(f"from {home} import {', '.join(names)}")
        for name in names:
            value = getattr(importlib.import_module(home), name)
            bodies.append(_class(value))
            for base in value.__mro__:
                if base.__module__.startswith("omnigraph"):
                    imports += _imports(base.__module__)
    unique = dict.fromkeys(imports)
    own = [
        "import asyncio",
        "import functools",
        "from collections.abc import AsyncGenerator, AsyncIterator",
        "from contextlib import asynccontextmanager",
        "from types import TracebackType",
        "from typing import TYPE_CHECKING, Any, Self",
        "from omnigraph.client.asynchronous.running import CallThreads, leave",
    ]
    defaults = ["from omnigraph.core.limits import PAGE_BYTES, PAGE_CHANGES, POLL_COMMITS"]
    defaults += ["from omnigraph.history.identity import MAIN"]
    checked = textwrap.indent("\n".join(unique), "    ")
    texts = [HEAD.format(what=what), *own, *defaults, "if TYPE_CHECKING:", checked, *bodies]
    return "\n".join(texts) + "\n"


def _imports(module: str) -> list[str]:
    """Return what a module imports of ours and of others, for its annotations."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.col_offset in {0, 4}:
            names = [item for item in node.names if item.name not in {"TYPE_CHECKING", "MAIN"}]
            names = [
                item for item in names if item.name not in {"PAGE_BYTES", "PAGE_CHANGES", "POLL_COMMITS"}
            ]
            if names and node.module not in {"contextlib", "typing", "types"}:
                found += [f"from {node.module} import {item.name}" for item in names if item.asname is None]
            if node.module == "typing":
                found += [f"from typing import {item.name}" for item in names if item.name == "Unpack"]
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found.append(f"from {module} import {node.name}")
        elif isinstance(node, ast.Import) and node.names[0].name == "pyarrow":
            found.append("import pyarrow as pa")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node in tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id.startswith("Remote"):
                found.append(f"from {module} import {target.id}")
    return found


def _class(value: type) -> str:
    name = value.__name__
    is_graph = name in {"Graph", "RemoteGraph"}
    lines = [f"class Async{name}:", f'    """The asynchronous twin of `{name}`."""', ""]
    if is_graph:
        lines += [
            f'    def __init__(self, graph: "{name}", threads: CallThreads | None = None) -> None:',
            '        """Take a graph, which is closed with this."""',
            "        self._it = graph",
            "        self._threads = CallThreads() if threads is None else threads",
            "",
            "    async def __aenter__(self) -> Self:",
            '        """Return the graph itself."""',
            "        return self",
            "",
            "    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, "
            "trace: TracebackType | None) -> None:",
            '        """Close the graph."""',
            "        await self.close()",
            "",
            "    async def close(self) -> None:",
            '        """Close the graph; idempotent."""',
            "        self._threads.end()",
            "        await asyncio.to_thread(self._it.close)",
            "",
        ]
    else:
        lines += [
            f'    def __init__(self, it: "{name}", threads: CallThreads) -> None:',
            '        """Take what this is the twin of."""',
            "        self._it, self._threads = it, threads",
            "",
        ]
    if hasattr(value, "_repr_html_"):
        lines += [
            "    def __repr__(self) -> str:",
            '        return f"Async{self._it!r}"',
            "",
            "    def _repr_html_(self) -> str:",
            "        return self._it._repr_html_()",
            "",
        ]
    for field in FIELDS.get(name, ()):
        lines += [f"    @property\n    def {field}(self) -> Any:  # noqa: ANN401 - as the field has it"]
        lines += [f'        """As `{name}` has it."""', f"        return self._it.{field}", ""]
    for member, found in _members(value):
        lines.append(textwrap.indent(_member(member, found), "    "))
    return "\n".join(lines)


def _members(value: type) -> list[tuple[str, object]]:
    seen, found = set[str](), list[tuple[str, object]]()
    for base in value.__mro__:
        if not base.__module__.startswith("omnigraph"):
            continue
        for name, member in vars(base).items():
            if name in seen or (name.startswith("_") and name != "__iter__") or name == "close":
                continue
            if (
                isinstance(member, property)
                or inspect.isfunction(member)
                or type(member).__name__ == "EmbeddedOnly"
            ):
                seen.add(name)
                found.append((name, member))
    return found


def _member(name: str, found: object) -> str:
    if type(found).__name__ == "EmbeddedOnly":
        return (
            f"async def {name}(self, *arguments: object, **options: object) -> None:\n"
            f'    """Refuse: this works on the storage of a graph alone."""\n'
            f"    self._it.{name}(*arguments, **options)\n"
        )
    function = found.fget if isinstance(found, property) else found
    assert inspect.isfunction(function)
    function = inspect.unwrap(function)
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    doc = (
        f'"""{inspect.getdoc(function) or ""}"""'
        if "\n" not in (inspect.getdoc(function) or "")
        else ('"""' + (inspect.getdoc(function) or "") + '\n"""')
    )
    doc = textwrap.indent(doc, "    ")
    returns = "None" if node.returns is None else ast.unparse(node.returns).strip("'\"")
    signature, passed = _signature(node.args), _passed(node.args)
    kind = "write" if name in WRITES else "read"
    if isinstance(found, property):
        if name not in WORKING:
            return f'@property\ndef {name}(self) -> "{returns}":\n{doc}\n    return self._it.{name}\n'
        return (
            f'async def {name}(self) -> "{returns}":\n{doc}\n'
            f"    return await self._threads.read(lambda: self._it.{name})\n"
        )
    if name == "__iter__":
        item = returns.partition("[")[2][:-1]
        return (
            f'def __aiter__(self) -> "AsyncIterator[{item}]":\n{doc}\n'
            "    return self._threads.items(self._it)\n"
        )
    if returns.startswith(("Iterator[", "Generator[")) and name != "branch":
        item = returns.partition("[")[2][:-1]
        at_once = ", at_once=1" if name == "events" else ""
        return (
            f'def {name}({signature}) -> "AsyncGenerator[{item}]":\n{doc}\n'
            f"    return self._threads.items(self._it.{name}({passed}){at_once})\n"
        )
    if name == "branch":
        owner = returns.partition("[")[2][:-1].strip("'\"")
        return (
            f"@asynccontextmanager\nasync def branch({signature}) -> "
            f'"AsyncIterator[Async{owner}]":\n{doc}\n'
            f"    entered = self._it.branch({passed})\n"
            "    bound = await self._threads.write(entered.__enter__)\n"
            "    try:\n"
            f"        yield Async{owner}(bound, self._threads)\n"
            "    except BaseException as error:\n"
            "        await self._threads.write(functools.partial(leave, entered, error))\n"
            "        raise\n"
            "    await self._threads.write(lambda: entered.__exit__(None, None, None))\n"
        )
    made = f"lambda: self._it.{name}({passed})" if passed else f"self._it.{name}"
    call = f"await self._threads.{kind}({made})"
    if returns in TWINS:
        return (
            f'async def {name}({signature}) -> "Async{returns}":\n{doc}\n'
            f"    return Async{returns}({call}, self._threads)\n"
        )
    give = "" if returns == "None" else "return "
    return f'async def {name}({signature}) -> "{returns}":\n{doc}\n    {give}{call}\n'


def _signature(arguments: ast.arguments) -> str:
    for item in (*arguments.args, *arguments.kwonlyargs, arguments.kwarg):
        if item is not None and item.annotation is not None:
            text = ast.unparse(item.annotation)
            plain = ast.parse(text.replace("'", "").replace('"', "")).body[0]
            assert isinstance(plain, ast.Expr)
            item.annotation = ast.Constant(ast.unparse(plain.value))
    return ast.unparse(arguments)


def _passed(arguments: ast.arguments) -> str:
    parts = [item.arg for item in arguments.args if item.arg != "self"]
    parts += [f"{item.arg}={item.arg}" for item in arguments.kwonlyargs]
    if arguments.kwarg is not None:
        parts.append(f"**{arguments.kwarg.arg}")
    return ", ".join(parts)


def _formatted(text: str) -> str:
    """Return a module as the linter leaves it: what no annotation needs is not imported."""
    name = ["--stdin-filename", str(FOLDER / "made.py"), "-"]
    ruff = str(Path(sys.executable).with_name("ruff"))
    fixed = [ruff, "check", "--fix-only", "-q", *name]
    for command in (fixed, [ruff, "format", "-q", *name]):
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text
