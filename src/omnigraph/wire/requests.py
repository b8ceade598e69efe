"""What a server is asked: the bodies and query strings of its routes.

Fields that a model does not know are ignored, except where it says otherwise. Values are taken as they are:
nothing that merely looks like a number or a truth value becomes one.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Params = dict[str, Any]
NUMBER_MAX = 2**63 - 1  # what every reader of a document can hold
LoadModeWord = Literal["overwrite", "append", "merge"]
RowsType = Annotated[str, Field(description="The type of every row; edges have columns from and to.")]


class Request(BaseModel):
    """A body."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class QueryString(BaseModel):
    """The parameters of a query string, which are texts."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class ReadRequest(Request):
    """A read, in the words of older clients."""

    query_source: str = Field(description="The text of the query.")
    query_name: str | None = Field(None, description="Which query of the text; not needed for the only one.")
    params: Params | None = None
    branch: str | None = Field(None, description="The branch to read, main if not given.")
    snapshot: str | None = Field(None, description="A commit to read instead of the newest state.")


class QueryRequest(Request):
    """A read."""

    query: str = Field(description="The text of the query.")
    name: str | None = Field(None, description="Which query of the text; not needed for the only one.")
    params: Params | None = None
    branch: str | None = Field(None, description="The branch to read, main if not given.")
    snapshot: str | None = Field(None, description="A commit to read instead of the newest state.")


class ChangeRequest(Request):
    """A mutation; `query_source` and `query_name` are older words for `query` and `name`."""

    query: str | None = Field(None, description="The text of the mutation.")
    query_source: str | None = None
    name: str | None = Field(None, description="Which mutation of the text; not needed for the only one.")
    query_name: str | None = None
    params: Params | None = None
    branch: str | None = Field(None, description="The branch to change, main if not given.")
    message: str | None = Field(None, description="A note for the commit.")

    @model_validator(mode="after")
    def one_of_each(self) -> "ChangeRequest":
        """Refuse a request without a text, and one that gives a thing in both words."""
        if (self.query is None) == (self.query_source is None):
            raise ValueError("give the text as 'query' or as 'query_source'")
        if self.name is not None and self.query_name is not None:
            raise ValueError("give the name as 'name' or as 'query_name'")
        return self

    @property
    def text(self) -> str:
        """The text of the mutation."""
        text = self.query_source if self.query is None else self.query
        assert text is not None, "the validator has seen to it"
        return text

    @property
    def chosen(self) -> str | None:
        """The name of the mutation, if it was given."""
        return self.query_name if self.name is None else self.name


class OnBranch(QueryString):
    """Which branch is meant."""

    branch: str | None = Field(None, description="The branch, main if not given.")


class BlobQuery(QueryString):
    """Which value is meant: a Blob property of one node or edge."""

    entity: Literal["node", "edge"]
    type: str = Field(description="The type of the node or edge.")
    id: str = Field(description="Its id.")
    property: str = Field(description="The name of the property.")
    branch: str | None = Field(None, description="The branch to read, main if not given.")
    snapshot: str | None = Field(None, description="A commit to read instead of the newest state.")


class OnSnapshot(OnBranch):
    """Which state is meant: of a branch now, or a past one."""

    snapshot: str | None = Field(None, description="A commit to read instead of the newest state.")


class SchemaQuery(OnSnapshot):
    """Which schema is meant, and whether its types are wanted as a document, too."""

    format: Literal["source", "catalog"] = Field(
        "source", description="With catalog, also the types as a document."
    )


class TypeQuery(OnSnapshot):
    """Which type is meant, and when."""

    type: str = Field(description="The name of the type, or the key of its table, as node:Craft.")


class TableQuery(TypeQuery):
    """Which rows are meant."""

    column: list[str] = Field([], description="Only this column; may be repeated.")


class EntityQuery(QueryString):
    """Which node or edge is meant, and when."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    type: str = Field(description="The name of the type, or the key of its table, as node:Craft.")
    id: str = Field(description="Its id.")
    target: str | None = Field(None, description="A branch or a commit, main if not given.")


class ExportRequest(Request):
    """What to export; both lists empty is everything."""

    branch: str | None = Field(None, description="The branch, main if not given.")
    type_names: list[str] | None = Field(None, description="Names of types.")
    table_keys: list[str] | None = Field(None, description="Keys of tables, as node:Craft.")


CHECKS = ("dry_run", "strict_columns")  # what a load that lets them pass would harm: see `checks_elsewhere`


def checks_elsewhere(given: Any) -> Any:  # noqa: ANN401 - as pydantic has it
    """Refuse checks of a load where they are not kept; servers that do not know their routes answer 404.

    Raises:
        ValueError: there is one.
    """
    for name in CHECKS:
        if isinstance(given, dict) and name in given:
            raise ValueError(f"'{name}' is kept by load/ndjson/checked and load/arrow/checked alone")
    return given


class IngestRequest(Request):
    """Data to load, as NDJSON in a text."""

    no_checks = model_validator(mode="before")(checks_elsewhere)

    data: str = Field(description="NDJSON: one record on each line.")
    branch: str | None = Field(None, description="The branch, main if not given.")
    from_: str | None = Field(None, alias="from", description="What to make a missing branch from.")
    mode: LoadModeWord = Field("merge", description="What becomes of ids that exist; merge if not given.")
    index: bool = Field(True, description="Whether to build missing indexes afterwards.")
    message: str | None = Field(None, description="A note for the commit.")


class _AnyLoad(QueryString):
    """How a raw body is loaded."""

    branch: str | None = Field(None, description="The branch, main if not given.")
    from_: str | None = Field(None, alias="from", description="What to make a missing branch from.")
    mode: LoadModeWord = Field("merge", description="What becomes of ids that exist; merge if not given.")
    index: bool = Field(True, description="Whether to build missing indexes afterwards.")
    message: str | None = Field(None, description="A note for the commit.")


class LoadQuery(_AnyLoad):
    """How a raw body is loaded."""

    no_checks = model_validator(mode="before")(checks_elsewhere)


class ArrowLoadQuery(LoadQuery):
    """How a stream of Arrow's is loaded, and what its rows are."""

    type: RowsType


class CheckedLoadQuery(_AnyLoad):
    """How a raw body is loaded, and what is to be checked; a check that is misspelt is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    dry_run: bool = Field(False, description="Whether to say only what would happen; nothing is written.")
    strict_columns: bool = Field(
        False, description="Whether to refuse a load that would clear properties of existing rows."
    )


class CheckedArrowLoadQuery(CheckedLoadQuery):
    """How a stream of Arrow's is loaded, what its rows are, and what is to be checked."""

    type: RowsType


class BranchCreateRequest(Request):
    """A branch to make."""

    name: str
    from_: str | None = Field(None, alias="from", description="What to make it from, main if not given.")


class BranchUpgradeRequest(Request):
    """How a branch is upgraded; all of it may be left out."""

    allow_data_loss: bool = Field(
        False,
        description="Whether the values of what main dropped leave the files of the branch, and its past.",
    )
    index: bool = Field(True, description="Whether to build missing indexes afterwards.")
    message: str | None = Field(None, description="A note for the commit.")


class BranchMergeRequest(Request):
    """Two branches to merge."""

    source: str
    target: str | None = Field(None, description="The branch to merge into, main if not given.")
    message: str | None = Field(None, description="A note for the commit.")
    delete_branch: bool = Field(False, description="Whether to delete the source afterwards.")
    dry_run: bool = Field(False, description="Whether to say only what would happen.")


class CommitQuery(QueryString):
    """Which commits to list."""

    branch: str | None = Field(None, description="The branch, main if not given.")
    actor: str | None = Field(None, description="Only commits of this actor.")
    since: str | None = Field(None, description="Only commits from this day or moment on (ISO 8601).")
    until: str | None = Field(None, description="Only commits up to this day or moment.")
    merge: Literal["true", "false"] | None = Field(None, description="Only merges, or none of them.")
    limit: int | None = Field(None, ge=0, le=NUMBER_MAX, description="At most so many.")


class CommitOfBranch(QueryString):
    """Where a commit is looked for."""

    branch: str | None = Field(None, description="Only on this branch; on every one if not given.")


class ChangesOfCommit(QueryString):
    """Which changes of a commit to show."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: list[Literal["node", "edge"]] = Field([], description="Only nodes, or only edges.")
    type: list[str] = Field([], description="Only this type; may be repeated.")
    op: list[Literal["insert", "update", "delete"]] = Field([], description="Only this operation.")
    limit: int | None = Field(None, ge=1, le=NUMBER_MAX, description="Changes on one page.")
    page_token: str | None = Field(None, description="The next page, as the last one named it.")


class ChangeFeedQuery(ChangesOfCommit):
    """Where a feed of changes continues, and which changes it has."""

    branch: str | None = Field(None, description="The branch, main if not given.")
    cursor: str | None = Field(None, description="Where an earlier poll ended.")
    start: str | None = Field(None, description="now, beginning or after:<commit id>.")


class BaselineRequest(Request):
    """Which entities a feed begins with."""

    branch: str | None = Field(None, description="The branch, main if not given.")
    kind: list[Literal["node", "edge"]] = []
    type: list[str] = []
    op: list[Literal["insert", "update", "delete"]] = []


class DiffQuery(ChangesOfCommit):
    """Two sides to compare."""

    from_: str = Field(alias="from", description="A branch or a commit: the side before.")
    to: str = Field(description="A branch or a commit: the side after.")


class SchemaPlanRequest(Request):
    """A schema that is intended."""

    schema_source: str = Field(description="The text of the schema.")
    branch: str | None = Field(None, description="The branch, main if not given.")
    allow_data_loss: bool = Field(False, description="Whether drops are hard.")


class SchemaApplyRequest(SchemaPlanRequest):
    """A schema to give to a branch."""

    base: str | None = Field(
        None, description="The commit whose schema this was made from: refused if it changed since."
    )
    index: bool = Field(True, description="Whether to build missing indexes afterwards.")
    message: str | None = Field(None, description="A note for the commit.")


class QueryCheckRequest(Request):
    """A query file to check."""

    query: str = Field(description="The text of the file.")
    branch: str | None = Field(None, description="The branch whose schema counts, main if not given.")


class RecoveryQuery(QueryString):
    """How many recoveries to list."""

    limit: int | None = Field(None, ge=0, le=NUMBER_MAX, description="At most so many.")


class InvokeStoredQueryRequest(Request):
    """A call of a stored query; all of it may be left out."""

    params: Params | None = None
    branch: str | None = Field(None, description="The branch to read or change, main if not given.")
    snapshot: str | None = Field(None, description="A commit to read instead of the newest state.")
    expect_mutation: bool | None = Field(None, description="Refuse a query of the other kind.")
    message: str | None = Field(None, description="A note for the commit of a mutation.")
