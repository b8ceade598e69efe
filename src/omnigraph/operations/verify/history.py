"""What manifests, schema files and pins say, compared with each other and with the tables.

H1  A table is compared with its pin in the order HEAD, sidecars, pin: a sidecar is durable before HEAD moves
    and goes only after the pin has moved. So one of the last two looks explains what a live writer did, and
    what neither explains is drift.
H2  Others may write meanwhile: what is wrong is looked at again, from the beginning. Only what both looks
    find at the same place is wrong. While a schema is being applied its files are not compared.
H3  A branch that cannot be followed is reported with its files; the others are looked at.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from omnigraph.catalog.arrow_schema import differing_columns
from omnigraph.catalog.build import build_catalog, ir_text, read_ir
from omnigraph.catalog.model import Catalog
from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.pending import PendingSidecar, list_pending
from omnigraph.commit.write import owns
from omnigraph.core.errors import OmnigraphError
from omnigraph.history.contract import SCHEMA_IR, Contract, check_against_manifest, read_contract
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import MAIN, BranchIdentity, stored_name
from omnigraph.history.lineage import MERGED_HISTORY, ChainedLog, ChainPlace
from omnigraph.history.state import ManifestState
from omnigraph.operations.verify.control_files import control_findings, holder_as_far_as_readable
from omnigraph.operations.verify.lost import lost_findings
from omnigraph.operations.verify.report import FINDINGS_MAX, FindingKind, VerifyFinding
from omnigraph.storage.control.object_store import StorageAdapter


@dataclass(frozen=True, slots=True)
class BranchLook:
    """One branch as it was read, its tables, and the types that its manifest accepted."""

    state: ManifestState
    entries: tuple[TableEntry, ...]
    catalog: Catalog | None

    @property
    def name(self) -> str:
        """The name of the branch."""
        return self.state.branch.name

    @property
    def stage(self) -> str:
        """What the check of its rows is called while it lasts."""
        return "rows" if self.name == MAIN else f"rows on {self.name}"

    def where(self, table_key: str) -> str:
        """Say where a table is."""
        return table_key if self.name == MAIN else f"{table_key} on branch {self.name}"


@dataclass(frozen=True, slots=True)
class HistoryLook:
    """What one look at the branches has found, and the unfinished writes that it has met."""

    branches: tuple[BranchLook, ...]
    findings: tuple[VerifyFinding, ...]
    pending: tuple[str, ...]


def check_history(parts: Parts, branches: Sequence[str]) -> HistoryLook:
    """Check some branches: their history, their schema, and where their tables are (H1, H2).

    Raises:
        StorageError: the store failed, which says nothing about what is in it.
    """
    look = _look(parts, branches)
    if not look.findings:
        return look
    again = _look(parts, branches)
    known = {(finding.kind, finding.where) for finding in look.findings}
    findings = tuple(finding for finding in again.findings if (finding.kind, finding.where) in known)
    return HistoryLook(again.branches, findings, again.pending)


def where_and_id(where: str, row_id: str | None) -> str:
    """Say where a row is."""
    return where if row_id is None else f"{where} {row_id!r}"


def _look(parts: Parts, names: Sequence[str]) -> HistoryLook:
    findings: list[VerifyFinding] = []
    contract = _contract(parts.adapter, findings)
    states = [state for name in names if (state := _state(parts, name)) is not None]
    looks = [_branch_look(state, contract, findings) for state in states]
    main = next((look for look in looks if look.name == MAIN), None)
    if contract is not None and main is not None:
        findings += _schema_findings(contract, main)
    if holder_as_far_as_readable(parts) is not None:
        findings = [finding for finding in findings if finding.kind is not FindingKind.SCHEMA]
    logs = [ChainedLog(state.commits, branch=state.branch.name) for state in states]
    for state, log in zip(states, logs, strict=True):
        findings += _lineage_findings(state, log, logs)
    for look in looks:
        findings += _table_findings(parts, look)
    findings += control_findings(parts)
    findings += lost_findings(parts, states, is_quiet=lambda: not list_pending(parts))
    drift, pending = _drift_findings(parts, looks)
    return HistoryLook(tuple(looks), (*findings, *drift), pending)


def _contract(adapter: StorageAdapter, findings: list[VerifyFinding]) -> Contract | None:
    try:
        return read_contract(adapter)
    except OmnigraphError as error:
        findings.append(VerifyFinding.of(FindingKind.SCHEMA, "the schema files", str(error)))
        return None


def _state(parts: Parts, name: str) -> ManifestState | None:
    """Return the state of a branch, all of it read now; none where it cannot be followed (H3)."""
    try:
        return parts.coordinator.read_apart(parts.branches.resolve(name))
    except (OmnigraphError, ValueError):  # the comparison of its files says why
        return None


def _branch_look(
    state: ManifestState, contract: Contract | None, findings: list[VerifyFinding]
) -> BranchLook:
    name = f"branch {state.branch.name}"
    catalog: Catalog | None = None
    entries: tuple[TableEntry, ...] = ()
    try:
        text = state.schema_text_at(state.version)
        is_contract = contract is not None and ir_text(read_ir(text)) == contract.texts[SCHEMA_IR]
        catalog = contract.catalog if contract is not None and is_contract else build_catalog(read_ir(text))
    except (OmnigraphError, ValueError, LookupError) as error:
        findings.append(VerifyFinding.of(FindingKind.SCHEMA, name, f"the schema in the manifest: {error}"))
    try:
        entries = state.tables.entries()
    except OmnigraphError as error:
        findings.append(VerifyFinding.of(FindingKind.MANIFEST, name, str(error)))
    return BranchLook(state, entries, catalog)


def _schema_findings(contract: Contract, main: BranchLook) -> Iterator[VerifyFinding]:
    """Compare the schema files with what the manifest of main accepted, and with its tables."""
    where = "the schema files"
    if main.catalog is not None and main.catalog is not contract.catalog:
        yield VerifyFinding.of(FindingKind.SCHEMA, where, "another schema than the manifest's was accepted")
    try:
        check_against_manifest(contract, main.state.snapshot())
    except OmnigraphError as error:
        yield VerifyFinding.of(FindingKind.SCHEMA, where, str(error))


def _lineage_findings(
    state: ManifestState, log: ChainedLog, logs: Sequence[ChainedLog]
) -> Iterator[VerifyFinding]:
    """Check that a branch is one line of commits with growing numbers, and ends in its head."""
    where = f"branch {state.branch.name}"
    told = [*_line(state), *_numbers(state), *_head(state), *_merges(log, logs)]
    for what in told[:FINDINGS_MAX]:
        yield VerifyFinding.of(FindingKind.LINEAGE, where, what)


def _line(state: ManifestState) -> Iterator[str]:
    commits = list(state.commits.oldest_first(above=0))
    if commits and commits[0].parent_commit_id is not None:
        yield f"the first commit {commits[0].graph_commit_id} continues {commits[0].parent_commit_id}"
    for before, commit in pairwise(commits):
        if commit.manifest_version == before.manifest_version:
            ids = f"{before.graph_commit_id} and {commit.graph_commit_id}"
            yield f"commits {ids} have the same number {commit.manifest_version}"
        elif commit.parent_commit_id != before.graph_commit_id:
            yield (
                f"commit {commit.graph_commit_id} continues {commit.parent_commit_id}, and stands behind "
                f"{before.graph_commit_id}"
            )


def _numbers(state: ManifestState) -> Iterator[str]:
    """Yield publishes whose rows no commit explains, and commits that are newer than their manifest."""
    known = {int(str(number)) for number in state.commits.rows()["table_version"].to_pylist()}
    published = {int(str(number)) for rows in state.log for number in rows["published_at"].to_pylist()}
    for number in sorted(published - known):
        yield f"rows of publish {number} belong to no commit"
    if state.sequence > state.version:
        yield f"the newest commit has number {state.sequence} in a manifest of version {state.version}"


def _head(state: ManifestState) -> Iterator[str]:
    name, head = state.branch.name, state.head
    noted = state.heads.get(name)
    is_own = head.manifest_branch == stored_name(name)
    if noted is None and is_own:
        yield f"there is no head row, and the newest commit is {head.graph_commit_id}"
    if noted is not None and noted != head.graph_commit_id:
        yield f"the head row names {noted}, and the newest commit is {head.graph_commit_id}"


def _merges(log: ChainedLog, logs: Sequence[ChainedLog]) -> Iterator[str]:
    """Yield merges whose source, where a branch shows its history, is another commit than the one recorded.

    What only deleted branches showed is known from the record alone; merges of old formats have none.
    """
    for place, metadata in log.merges():
        merged, record = str(metadata["merged_parent_commit_id"]), metadata.get(MERGED_HISTORY)
        if record is None:
            continue
        chain, version = record["place"]
        source = ChainPlace(str(chain), int(version), merged)
        if any(other.contradicts(source) for other in logs):
            yield f"merge {place.commit_id} names {merged} at a place where another commit is"


def _table_findings(parts: Parts, look: BranchLook) -> Iterator[VerifyFinding]:
    """Compare every table with its pin and with its type."""
    for entry in look.entries:
        where = look.where(entry.table_key)
        try:
            handle = parts.open(entry)
            uuid = handle.transaction_uuid
        except OmnigraphError as error:
            yield VerifyFinding.of(FindingKind.TABLE, where, str(error))
            continue
        if handle.row_count != entry.row_count:
            what = f"version {entry.version} has {handle.row_count} rows, {entry.row_count} were published"
            yield VerifyFinding.of(FindingKind.PIN, where, what)
        if entry.pin.transaction_uuid not in {None, uuid}:
            what = f"version {entry.version} was made by transaction {uuid}, not {entry.pin.transaction_uuid}"
            yield VerifyFinding.of(FindingKind.PIN, where, what)
        if look.catalog is not None and entry.table_key in {type_.table_key for type_ in look.catalog.types}:
            for what in differing_columns(handle.schema, look.catalog.type_of(entry.table_key)):
                yield VerifyFinding.of(FindingKind.COLUMNS, where, what)


def _drift_findings(parts: Parts, looks: Iterable[BranchLook]) -> tuple[list[VerifyFinding], tuple[str, ...]]:
    """Compare HEADs with pins, and return what nothing explains, with the unfinished writes (H1)."""
    findings: list[VerifyFinding] = []
    ahead: list[tuple[BranchLook, TableEntry, int]] = []
    for look in looks:
        for entry in (entry for entry in look.entries if owns(look.state.branch, entry)):
            where = look.where(entry.table_key)
            try:
                head = parts.store.latest_version(parts.address(entry))
            except OmnigraphError as error:
                findings.append(VerifyFinding.of(FindingKind.TABLE, where, str(error)))
                continue
            if head > entry.version:
                ahead.append((look, entry, head))
            elif head < entry.version:
                what = f"is at version {head}, published at {entry.version}"
                findings.append(VerifyFinding.of(FindingKind.BEHIND, where, what))
    try:
        pending = list_pending(parts)
    except OmnigraphError as error:
        return [*findings, VerifyFinding.of(FindingKind.SIDECAR, "__recovery", str(error))], ()
    findings += [
        VerifyFinding.of(
            FindingKind.DRIFT,
            look.where(entry.table_key),
            f"is at version {head}, published at {entry.version}",
        )
        for look, entry, head in ahead
        if not _is_named(entry, pending) and not _has_moved(parts, look.state.branch, entry)
    ]
    return findings, tuple(found.operation_id for found in pending)


def _is_named(entry: TableEntry, pending: Sequence[PendingSidecar]) -> bool:
    return any(found.sidecar.names(entry.identity, entry.pin.ref) for found in pending)


def _has_moved(parts: Parts, branch: BranchIdentity, entry: TableEntry) -> bool:
    pin = parts.coordinator.read_apart(branch).tables.pins.get(entry.identity)
    return pin is None or not pin.names_same(entry.pin)
