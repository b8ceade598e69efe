"""What a verification reports: files, and findings with their meaning and their remedy."""

import shlex
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.history.identity import MAIN

FINDINGS_MAX = 20  # of one kind in one table: more of the same tell nothing new


class FileStatus(StrEnum):
    """What became of a file since its commit."""

    OK = "ok"
    MISSING = "missing"
    LENGTH = "length"
    CHECKSUM = "checksum"
    NOT_RECORDED = "not_recorded"  # it exists, and what it should hold is unknown

    @property
    def is_damage(self) -> bool:
        """Whether something is wrong with the file."""
        return self not in {FileStatus.OK, FileStatus.NOT_RECORDED}


class FindingKind(StrEnum):
    """What can be wrong with a graph."""

    FILE = "file"
    MANIFEST = "manifest"
    REPEATED_KEY = "repeated_key"
    LINEAGE = "lineage"
    SCHEMA = "schema"
    SIDECAR = "sidecar"
    CONTROL_FILE = "control_file"
    AUDIT = "audit"
    TABLE = "table"
    PIN = "pin"
    COLUMNS = "columns"
    DRIFT = "drift"
    BEHIND = "behind"
    VALUE = "value"
    ID = "id"
    UNIQUE = "unique"
    ENDPOINT = "endpoint"
    CARDINALITY = "cardinality"
    INDEX = "index"


_PUT_BACK = "put the files back from a copy of the graph, then verify again"
_GO_BACK = f"{_PUT_BACK}; or go back to a version that does not need them: omnigraph repair --to VERSION"
_OF_INDEX = (
    f"{_PUT_BACK}; or build the index anew with omnigraph index rebuild TYPE PROPERTY: commits from before "
    "it need the file until omnigraph cleanup ends their retention"
)
_CORRECT = "correct the rows with omnigraph mutate, or load them again with omnigraph load --mode merge"
# What each kind means, and what mends it.
_EXPLAINED: dict[FindingKind, tuple[str, str]] = {
    FindingKind.FILE: ("commits that need this file cannot be read, or show something else", _GO_BACK),
    FindingKind.MANIFEST: ("nothing of this branch can be read", _GO_BACK),
    FindingKind.REPEATED_KEY: (
        "two writers have published at once: one of their commits may hide the other",
        "compare omnigraph commit list with what they wrote, and write again what is missing",
    ),
    FindingKind.LINEAGE: (
        "history cannot be followed: merges and changes may start from the wrong commit",
        "go back to the last version whose history is whole: omnigraph repair --to VERSION",
    ),
    FindingKind.SCHEMA: (
        "the graph does not open, or its rows are checked by another schema than they were written with",
        "put _schema.pg, _schema.ir.json and __schema_state.json back from a copy of the graph",
    ),
    FindingKind.SIDECAR: (
        "nobody can tell what an unfinished write has done: the graph does not open for writing",
        "put the file back from a copy of the graph, or open the graph with the build that wrote it",
    ),
    FindingKind.CONTROL_FILE: (
        "what the graph has noted about itself cannot be read: changes of the schema, cleanups or copies "
        "are refused",
        "put the file back from a copy of the graph",
    ),
    FindingKind.AUDIT: (
        "which unfinished writes were settled, and how, is not known; no row is concerned. Where it cannot "
        "be read, what dead writers leave is not settled, and the graph does not open for writing then",
        "put _graph_commit_recoveries.lance back from a copy of the graph; or, where it cannot be read, move "
        "that folder out of the graph: a new one is begun, and the record of the past is given up",
    ),
    FindingKind.TABLE: ("queries of this table fail", _GO_BACK),
    FindingKind.PIN: (
        "the table does not hold what its commit published: its files were replaced by others",
        _GO_BACK,
    ),
    FindingKind.COLUMNS: (
        "queries of this table fail, or read values of another type",
        "put the table's files back from a copy of the graph, or export what can be read and load it again",
    ),
    FindingKind.DRIFT: (
        "something other than Omnigraph has committed to the table: nobody sees that, and writes are refused",
        "omnigraph repair says what it is; omnigraph repair --confirm publishes it, if no row is in doubt",
    ),
    FindingKind.BEHIND: ("published versions of the table are gone: queries of it fail", _GO_BACK),
    FindingKind.VALUE: ("a rule of the schema does not hold for rows that queries return", _CORRECT),
    FindingKind.ID: (
        "one entity is two rows, or cannot be found by its key: lookups, updates and merges take one of them",
        "correct the records of an omnigraph export, and load them with omnigraph load --mode overwrite",
    ),
    FindingKind.UNIQUE: ("two entities share what the schema promises to be unique", _CORRECT),
    FindingKind.ENDPOINT: (
        "traversals pass over the edge, since the node at its end does not exist",
        "delete the edge with omnigraph mutate, or load the missing node with omnigraph load --mode merge",
    ),
    FindingKind.CARDINALITY: (
        "a node has more or fewer edges than the schema allows",
        "delete or insert edges with omnigraph mutate",
    ),
    FindingKind.INDEX: (
        "queries that use this index lose rows, or fail",
        "build it anew with omnigraph index rebuild TYPE PROPERTY",
    ),
}


@dataclass(frozen=True, slots=True)
class VerifyFinding:
    """One thing that is wrong: where, what exactly, what that means, and what mends it."""

    kind: FindingKind
    where: str
    what: str
    meaning: str
    remedy: str

    @staticmethod
    def of(kind: FindingKind, where: str, what: str) -> "VerifyFinding":
        """Return a finding with the explanation of its kind."""
        meaning, remedy = _EXPLAINED[kind]
        return VerifyFinding(kind, where, what, meaning, remedy)

    @staticmethod
    def of_file(path: str, what: str) -> "VerifyFinding":
        """Return a finding about a file: one of an index can be made again."""
        found = VerifyFinding.of(FindingKind.FILE, path, what)
        return replace(found, remedy=_OF_INDEX) if "/_indices/" in path else found

    def of_property(self, table_key: str, column: str, branch: str) -> "VerifyFinding":
        """Return it with a remedy that names the property and the branch as a command takes them."""
        on = "" if branch == MAIN else f" --branch {shlex.quote(branch)}"
        return replace(self, remedy=self.remedy.replace("TYPE PROPERTY", f"{table_key} {column}{on}"))


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file: what it should be, and what it is."""

    path: str
    status: FileStatus
    length: int | None
    found_length: int | None


@dataclass(frozen=True, slots=True)
class UnreferencedFile:
    """A file that no version needs; a write that is under way may still come to need it."""

    path: str
    length: int


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification found.

    `unread` gives the branches whose manifest cannot be followed, and why; `repeated` the keys that a
    manifest has more than once. `findings` has those and everything else that is wrong, `untold` how many
    more of the same kinds there are. `pending` are unfinished writes, which the next write or read-write open
    settles. Only a deep verification looks at rows and indexes, and lists what is `unreferenced`.
    """

    branches: tuple[str, ...]
    files: tuple[FileReport, ...]
    unread: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    findings: tuple[VerifyFinding, ...] = ()
    untold: int = 0
    pending: tuple[str, ...] = ()
    is_deep: bool = False
    rows_checked: int = 0
    unreferenced: tuple[UnreferencedFile, ...] = ()

    @property
    def damaged(self) -> tuple[FileReport, ...]:
        """The files with something wrong."""
        return tuple(file for file in self.files if file.status.is_damage)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def counts(self) -> dict[str, int]:
        """How many files have each status."""
        found = dict.fromkeys((status.value for status in FileStatus), 0)
        for file in self.files:
            found[file.status.value] += 1
        return found
