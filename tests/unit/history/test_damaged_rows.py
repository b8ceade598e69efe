"""Rows of the manifest whose metadata a turned bit has changed are damage, and told as such."""

import pytest

from omnigraph.core.damage import GraphDamaged
from omnigraph.history.identity import MAIN_BRANCH
from omnigraph.history.manifest_rows import head_row, metadata_members, rows_table
from omnigraph.history.state import ManifestState

HEAD_ID = "01M7QA4E3M2SXWQMHX0ZTW5ZV9"


@pytest.mark.parametrize(
    "text", [f'{{"head_commit_id":"{HEAD_ID}*,"parent_commit_id":null}}', "[]", '"x"', "null", "None", ""]
)
def test_a_text_that_no_publish_writes_is_damage(text: str) -> None:
    with pytest.raises(GraphDamaged, match="__manifest"):
        metadata_members(text)


def test_a_member_that_every_such_row_has_is_there_or_the_row_is_damaged() -> None:
    members = metadata_members('{"branch": null}')

    assert members["branch"] is members.get("actor") is None
    with pytest.raises(GraphDamaged, match="has no 'head_commit_id'"):
        members["head_commit_id"]


@pytest.mark.parametrize("old", [f'{HEAD_ID}"', "head_commit_id"])
def test_a_head_that_cannot_be_read_is_damage(old: str) -> None:
    row = head_row("main", HEAD_ID, None)
    row["metadata"] = row["metadata"].replace(old, f"{old[:-1]}*")

    with pytest.raises(GraphDamaged):
        ManifestState(MAIN_BRANCH, 0).with_rows(rows_table([row]), version=1, fragments={})
