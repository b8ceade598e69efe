"""The verbs of a graph that its keeper uses: its schema, indexes, maintenance, and checks.

A method imports its operation when it is called, as in `graph.py`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.catalog.model import Catalog
from omnigraph.core.span import Source
from omnigraph.graph.arguments import check_flags, given_callback
from omnigraph.graph.source import text_source
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.open import refresh
from omnigraph.policy.request import Action

if TYPE_CHECKING:
    from omnigraph.catalog.stored_queries import StoredQueries
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.operations.cleanup.model import Age, CleanupResult
    from omnigraph.operations.commit_log import BranchLog
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.ensure_indices import IndexResult
    from omnigraph.operations.index_building import IndexPlacing
    from omnigraph.operations.index_status import TableIndexes
    from omnigraph.operations.optimize import OptimizeResult
    from omnigraph.operations.progress import TableProgressCallback
    from omnigraph.operations.repair_drift import DriftRepair
    from omnigraph.operations.schema.apply import SchemaApplyResult, SchemaPlan
    from omnigraph.operations.schema.change import Where
    from omnigraph.operations.status import GraphStatus
    from omnigraph.operations.verify.report import VerifyReport


class Administration:
    """What a handle on a graph is bound to, and the verbs of its keeper."""

    def __init__(
        self,
        graph: OpenGraph,
        actor: str | None = None,
        branch: str | None = None,
        stored: "StoredQueries | None" = None,
    ) -> None:
        """Wrap what `open` made; users call `omnigraph.open`."""
        self._graph = graph
        self._actor = actor
        self._branch = branch
        self._stored = stored

    def __repr__(self) -> str:
        from omnigraph.graph.display import graph_line  # late: for people who look at one

        uri = self._graph.parts.root.uri
        return graph_line("Graph", uri, self._branch, self._actor, is_closed=self._graph.is_closed)

    def _repr_html_(self) -> str:
        """Return the picture of the branch's schema; where that cannot be read, what the graph is."""
        from omnigraph.graph.display import graph_picture

        return graph_picture(repr(self), lambda: self.catalog, is_closed=self._graph.is_closed)

    @property
    def catalog(self) -> Catalog:
        """The types of the handle's branch."""
        from omnigraph.operations.schema.show import enter_schema

        return self._graph.catalog_on(enter_schema(self._graph, self._actor, self._branch))

    def catalog_on(self, branch: str | None, from_: str | None = None) -> Catalog:
        """Return the types of a branch, or of the one that it is about to be made from."""
        name = self._graph.enter(self._actor, Action.READ, self._on(branch))
        if from_ is not None:
            self._graph.enter(self._actor, Action.READ, from_)
        return self._graph.catalog_on(name, from_)

    def schema(self, *, branch: str | None = None) -> str:
        """Return the text of a branch's schema, as it was given."""
        from omnigraph.operations.schema.show import schema_source

        return schema_source(self._graph, branch=self._on(branch), actor=self._actor)

    def plan_schema(
        self, text: str | Path | Source, *, branch: str | None = None, allow_data_loss: bool = False
    ) -> "SchemaPlan":
        """Return the steps from a branch's schema to that of a `.pg` text or file; nothing is written."""
        from omnigraph.operations.schema.apply import plan_schema

        check_flags(allow_data_loss=allow_data_loss)
        source = text_source(text)
        return plan_schema(
            self._graph, source, branch=self._on(branch), allow_data_loss=allow_data_loss, actor=self._actor
        )

    def apply_schema(
        self,
        text: str | Path | Source,
        *,
        branch: str | None = None,
        base: str | None = None,
        allow_data_loss: bool = False,
        exclusive: bool = False,
        actor: str | None = None,
        message: str | None = None,
        index: bool = True,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: str | None = None,
    ) -> "SchemaApplyResult":
        """Give a branch another schema, from a `.pg` text or file, as one commit; then build missing indexes.

        What the text does not name is dropped. `base` is the id of the commit whose schema the text was made
        from: the change is refused if the branch has got another schema since. Other branches keep theirs.
        With `exclusive` the change is refused while there are any. `progress` is
        called for each table of which rows are written, when it is begun and when it is done. These rows are
        written by Spark if `engine` says so, or if they are large; `master` says where Spark runs.
        """
        from omnigraph.operations.progress import unseen
        from omnigraph.operations.schema.apply import apply_schema

        check_flags(allow_data_loss=allow_data_loss, exclusive=exclusive, index=index)
        return apply_schema(
            self._graph,
            text_source(text),
            branch=self._on(branch),
            base=base,
            allow_data_loss=allow_data_loss,
            exclusive=exclusive,
            actor=self._who(actor),
            message=message,
            index=index,
            progress=given_callback(progress, unseen),
            where=_where(engine, master),
        )

    def upgrade_branch(
        self,
        name: str,
        *,
        actor: str | None = None,
        message: str | None = None,
        index: bool = True,
        allow_data_loss: bool = False,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: str | None = None,
    ) -> "SchemaApplyResult":
        """Bring the changes of main's schema to a branch, as one commit; its rows stay as they are.

        With `allow_data_loss` the values of what main dropped go from the files and from the past of the
        branch as well. `progress`, `engine` and `master` are as of `apply_schema`.
        """
        from omnigraph.operations.progress import unseen
        from omnigraph.operations.schema.upgrade import upgrade_branch

        check_flags(index=index, allow_data_loss=allow_data_loss)
        return upgrade_branch(
            self._graph,
            name,
            actor=self._who(actor),
            message=message,
            index=index,
            allow_data_loss=allow_data_loss,
            progress=given_callback(progress, unseen),
            where=_where(engine, master),
        )

    def ensure_indices(
        self,
        *,
        branch: str | None = None,
        actor: str | None = None,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: str | None = None,
    ) -> "IndexResult":
        """Build the declared indexes that are missing; `progress` is as of `optimize`.

        `engine` says where they are built: `local`, in this process, or `spark`, by its executors; `auto`
        chooses by the rows. `master` is where Spark runs.

        Raises:
            SparkUnavailable: executors were asked for, and there are none.
        """
        from omnigraph.operations.ensure_indices import ensure_indices
        from omnigraph.operations.progress import unseen

        return ensure_indices(
            self._graph,
            branch=self._on(branch),
            actor=self._who(actor),
            progress=given_callback(progress, unseen),
            placing=_placing(engine, master),
        )

    def rebuild_index(
        self,
        type_name: str,
        property_name: str,
        *,
        branch: str | None = None,
        actor: str | None = None,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: str | None = None,
    ) -> "IndexResult":
        """Build the indexes of one property anew, over all rows, in place of those that are there.

        `progress` is as of `optimize`, `engine` and `master` as of `ensure_indices`.

        Raises:
            BadRequest: there is no such type, or the property has no index.
            SparkUnavailable: executors were asked for, and there are none.
        """
        from omnigraph.operations.ensure_indices import rebuild_index
        from omnigraph.operations.progress import unseen

        return rebuild_index(
            self._graph,
            type_name,
            property_name,
            branch=self._on(branch),
            actor=self._who(actor),
            progress=given_callback(progress, unseen),
            placing=_placing(engine, master),
        )

    def index_status(self, *, branch: str | None = None) -> "tuple[TableIndexes, ...]":
        """Return which declared indexes are built, and how much they cover."""
        from omnigraph.operations.index_status import index_status

        return index_status(self._graph, branch=self._on(branch), actor=self._actor)

    def status(self, *, branch: str | None = None) -> "GraphStatus":
        """Return the head of a branch, unfinished writes, indexes, sizes, and what maintenance would do.

        Nothing is written or healed.

        Raises:
            BranchNotFound: there is no such branch.
        """
        from omnigraph.operations.status import status

        return status(self._graph, branch=self._on(branch), actor=self._actor)

    def optimize(
        self,
        *,
        branch: str | None = None,
        actor: str | None = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "OptimizeResult":
        """Bring the tables of a branch into their best layout, as one commit: files folded, indexes merged.

        Missing indexes are built and the manifest is folded. No row and no version goes. Tables that a branch
        has not written are those of where it comes from, and are left alone. `progress` is called when a
        table is begun and when it is done.

        Raises:
            BranchNotFound: there is no such branch.
            PendingRecovery: an unfinished write waits for recovery.
        """
        from omnigraph.operations.optimize import optimize
        from omnigraph.operations.progress import unseen

        return optimize(
            self._graph,
            branch=self._on(branch),
            actor=self._who(actor),
            progress=given_callback(progress, unseen),
        )

    def cleanup(
        self,
        keep: int | None = None,
        older_than: "Age | None" = None,
        dry_run: bool = False,
        *,
        actor: str | None = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "CleanupResult":
        """Remove old versions of tables, and what nothing needs any more; a dry run only says what would go.

        A version goes if it is not among the newest `keep` of its table and was replaced more than
        `older_than` ago (a timedelta, or seconds). What a branch shows, what two branches need to be merged,
        and what this process reads stays. Commits stay in the history; one whose tables were removed can no
        longer be read.

        Raises:
            BadRequest: neither limit is given.
            PendingRecovery: an unfinished write must be recovered first.
            DriftNeedsRepair: a table is ahead of its pin, and nothing says why.
        """
        from omnigraph.operations.cleanup.cleanup import cleanup
        from omnigraph.operations.progress import unseen

        check_flags(dry_run=dry_run)
        return cleanup(
            self._graph,
            keep=keep,
            older_than=older_than,
            dry_run=dry_run,
            actor=self._who(actor),
            progress=given_callback(progress, unseen),
        )

    def refresh(self) -> None:
        """Heal, and read the schema and the manifest again."""
        refresh(self._graph, actor=self._actor, branch=self._branch)

    def recoveries(self) -> "list[RecoveryRecord]":
        """Return the finished recoveries, newest first."""
        from omnigraph.commit.recovery.audit import read_records

        self._graph.enter(self._actor, Action.READ, None)
        return read_records(self._graph.parts)

    def verify(
        self,
        *,
        branch: str | None = None,
        deep: bool = False,
        progress: "TableProgressCallback | None" = None,
    ) -> "VerifyReport":
        """Check all branches, or one: files, history, schema and pins; nothing is written.

        Every file is read and compared with what its commit recorded. A deep verification also checks every
        rule of the schema over all rows, compares indexes with rows, and lists files that nothing needs.

        Raises:
            BranchNotFound: there is no such branch.
        """
        from omnigraph.operations.progress import unseen
        from omnigraph.operations.verify.verify import verify

        check_flags(deep=deep)
        told = given_callback(progress, unseen)
        self._graph.enter_whole(self._actor, Action.READ)  # it tells of unfinished writes of all branches
        return verify(self._graph.parts, branch=branch, deep=deep, progress=told)

    def repair(
        self,
        *,
        confirm: bool = False,
        force: bool = False,
        branch: str | None = None,
        actor: str | None = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "DriftRepair":
        """Say which tables something other than Omnigraph has committed to, and publish them if confirmed.

        Without `confirm` nothing is changed. With it, tables are published of which it is known that no row
        changed; the others only with `force`. No data is rewritten. `progress` is as of `optimize`.

        Raises:
            PendingRecovery: a dead writer left something: open the graph again first.
            ConflictError: another writer was first.
        """
        from omnigraph.operations.progress import unseen
        from omnigraph.operations.repair_drift import repair_drift

        check_flags(confirm=confirm, force=force)
        return repair_drift(
            self._graph,
            confirm=confirm,
            force=force,
            branch=self._on(branch),
            actor=self._who(actor),
            progress=given_callback(progress, unseen),
        )

    def commit_log(self, *, branch: str | None = None) -> "BranchLog":
        """Return the commits of a branch for one who follows them: asked for now, read as often as needed."""
        from omnigraph.operations.commit_log import commit_log

        return commit_log(self._graph, branch=self._on(branch), actor=self._actor)

    def require_load(self, *, branch: str | None, from_: str | None, actor: str | None = None) -> None:
        """Make sure that a load may be made, before there is anything to load: also of its branch.

        Raises:
            PolicyDenied: the actor may not change the branch, or may not make it if there is none.
        """
        from omnigraph.operations.load.load import require_load

        require_load(self._graph, branch=self._on(branch), from_=from_, actor=self._who(actor))

    def _who(self, actor: str | None) -> str | None:
        """Return the actor: the one a call names, else the one the handle was opened for."""
        return self._actor if actor is None else actor

    def _on(self, branch: str | None) -> str | None:
        """Return the branch of a call: the one it names, else the one that the handle is bound to."""
        return self._branch if branch is None else branch


def _placing(engine: "Engine", master: str | None) -> "IndexPlacing":
    """Return where indexes are built.

    Raises:
        BadRequest: there is no such engine.
    """
    from omnigraph.operations.engine import check_engine
    from omnigraph.operations.index_building import IndexPlacing

    check_engine(engine)
    return IndexPlacing(engine, master)


def _where(engine: "Engine", master: str | None) -> "Where":
    """Return who writes the rows of a change of schema.

    Raises:
        BadRequest: there is no such engine.
    """
    from omnigraph.operations.engine import check_engine
    from omnigraph.operations.schema.change import Where

    check_engine(engine)
    return Where(engine, master)
