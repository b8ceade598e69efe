"""The verbs of a graph that look at one node or edge.

A method imports its operation when it is called, as in `graph.py`.
"""

from typing import TYPE_CHECKING

from omnigraph.graph.administration import Administration
from omnigraph.graph.arguments import required_text
from omnigraph.history.identity import MAIN

if TYPE_CHECKING:
    from omnigraph.operations.blob import Blob
    from omnigraph.operations.changes.entity_at import FoundEntity
    from omnigraph.operations.pin import SnapshotLike, Target


class EntityReads(Administration):
    """Reads of one node or edge, by its id."""

    def entity_at(
        self, type_name: str, entity_id: str, target: "Target | None" = None, *, actor: str | None = None
    ) -> dict[str, object]:
        """Return one node or edge as a branch or a commit shows it, else its newest state; opens one table.

        Raises:
            BadRequest: the id is no text.
            EntityNotFound: there is no such entity.
        """
        return entity_row(self, type_name, entity_id, target, actor=actor).values()

    def blob(
        self,
        entity: str,
        type: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        snapshot: "SnapshotLike | None" = None,
        actor: str | None = None,
    ) -> "Blob":
        """Return the value of a Blob property of a `node` or an `edge`; its bytes are read on demand.

        The ETag is strong: it changes with the bytes. Storing the row anew changes it too.

        Raises:
            BadRequest: there is no such type or property, or it is not a Blob.
            EntityNotFound: there is no such node or edge.
            NotFoundError: its value is null.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        from omnigraph.operations.blob import BlobCell, blob

        return blob(
            self._graph,
            BlobCell(entity, type, id, property),
            branch=self._on(branch) if snapshot is None else branch,
            snapshot=snapshot,
            actor=self._who(actor),
        )


def entity_row(
    graph: EntityReads, type_name: str, entity_id: str, target: "Target | None" = None, *, actor: str | None
) -> "FoundEntity":
    """Return what `entity_at` gives the values of: a row with the types of its columns, as a server sends it.

    Raises:
        BadRequest, EntityNotFound: as of `entity_at`.
    """
    from omnigraph.operations.changes.entity_at import entity_at

    entity_id = required_text("entity_id", entity_id)
    target = graph._branch or MAIN if target is None else target
    return entity_at(graph._graph, type_name, entity_id, target, actor=graph._who(actor))
