"""Changes as JSON documents: what commands print and servers answer."""

from collections.abc import Iterable
from datetime import date, datetime

from omnigraph.changes.model import ChangeBlock, ChangeCause, EntityChange, Image
from omnigraph.core.temporal import format_datetime, millis_of
from omnigraph.core.values import Json


def change_document(change: EntityChange) -> Json:
    """Return one change; a missing image is left out."""
    document: Json = {
        "kind": change.kind,
        "type": {"id": change.type.id, "name": change.type.name},
        "id": change.id,
        "op": change.op.value,
    }
    for name, image in (("before", change.before), ("after", change.after)):
        if image is not None:
            document[name] = _image(image)
    return document


def cause_document(cause: ChangeCause) -> Json:
    """Return the commit that made changes."""
    return {
        "graph_commit_id": cause.graph_commit_id,
        "parent_commit_id": cause.parent_commit_id,
        "merged_parent_commit_id": cause.merged_parent_commit_id,
        "authored_branch": cause.authored_branch,
        "actor_id": cause.actor_id,
        "authored_at": cause.authored_at_micros,
    }


def commit_changes_document(
    cause: ChangeCause, changes: Iterable[EntityChange], next_page_token: str | None
) -> Json:
    """Return one page of a commit's changes."""
    document = block_document(cause, changes)
    if next_page_token is not None:
        document["next_page_token"] = next_page_token
    return document


def block_document(cause: ChangeCause, changes: Iterable[EntityChange]) -> Json:
    """Return changes of one commit."""
    return {"cause": cause_document(cause), "changes": [change_document(item) for item in changes]}


def feed_document(
    blocks: Iterable[ChangeBlock], next_page_token: str | None, cursor: str | None, caught_up: bool | None
) -> Json:
    """Return one page of a feed; missing parts are left out."""
    ends: Json = {"next_page_token": next_page_token, "cursor": cursor, "caught_up": caught_up}
    given = {name: value for name, value in ends.items() if value is not None}
    return {"blocks": [block_document(block.cause, block.changes) for block in blocks], **given}


def _image(image: Image) -> Json:
    document: Json = {"properties": {name: _json(value) for name, value in image.properties.items()}}
    if image.endpoints is not None:
        document["endpoints"] = {"from": image.endpoints.source, "to": image.endpoints.target}
    return document


def _json(value: object) -> object:
    match value:
        case datetime():
            return format_datetime(millis_of(value))
        case date():
            return value.isoformat()
        case list():
            return [_json(item) for item in value]
        case _:
            return value
