"""Every class of error, raised below a query: a server answers it and a command prints it as tabled."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.core import access_errors, blob_errors, damage, errors, source_errors
from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.failpoint import failpoint
from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind
from omnigraph.core.span import Source, Span
from omnigraph.wire.error_document import error_document
from tests.support.atlas import GRAPH, place_atlas
from tests.support.error_table import error_classes, listed_errors
from tests.support.http_app import serving_app, settings_for
from tests.support.in_process import invoke
from tests.support.scripted import Answer, serving

READ = "query q() { match { $m: Mission } return { $m.title } }"
SENT_BY_NO_SERVER = {"TransportError", "UnsupportedError", "CommitOutcomeUnknown"}
ANOTHER_HERE = {"QueryNotFound"}  # a name that the text of a read does not have is a mistake of its caller
_DIAGNOSTICS, _SOURCE = [Diagnostic("nonsense", Span(0, 1))], Source("query", "a.gq")
_CONFLICT = MergeConflict("node:Craft", "VGR-1", MergeConflictKind.ORPHAN_EDGE, "no")
EXAMPLES = (
    errors.ParameterError("no", name="code"),
    errors.ValidationError("no", kind="record"),
    errors.ColumnsLeftOut([ClearedProperty("node:Craft", "name", 2)]),
    errors.EmbeddingModelMismatch(property="Craft.name", recorded="a", actual="b"),
    errors.EmbeddingError("no key", provider="a"),
    errors.SchemaError("no", steps=()),
    errors.ChangeCursorRejected("no"),
    errors.PolicyDenied(action="read", actor="act-mira", branch="main"),
    errors.BranchNotFound("june"),
    errors.CommitNotFound("01J"),
    errors.EntityNotFound("Craft", "VGR-9"),
    errors.QueryNotFound("x", known=()),
    errors.ExpectedVersionMismatch(table_key="node:Craft", expected=7, actual=8),
    errors.ReadSetChanged(member="main", expected="a", actual="b"),
    errors.SchemaChanged("main"),
    errors.PublishRetriesExhausted(5),
    errors.StaleCommit("no", expected=7, actual=8),
    errors.KeyConflict(table_key="node:Craft", row_id="VGR-1"),
    errors.MergeConflicts([_CONFLICT]),
    errors.AmbiguousMergeBase(source="june", target="main", ancestors=["a", "b"], reason="no"),
    errors.CloneUnfinished(place="copy", source="graph"),
    errors.BranchInUse("june", "no"),
    errors.BranchMoved("june", expected="a", actual="b"),
    errors.BranchesBlockSchemaApply(["june"]),
    errors.DriftNeedsRepair(table_key="node:Craft", pin=7, head=8),
    errors.PendingRecovery("optimize", ["a"]),
    errors.WriterLeaseHeld(host="build-7", pid=1, expires_at="12:00"),
    errors.CommitHasNoParent("01J"),
    errors.ChangeSchemaBoundary(
        type_name="Craft", before_commit_id="01H", commit_id="01J", way_out="take a baseline"
    ),
    errors.PreconditionFailed(branch="main", expected="a", actual="b"),
    errors.ChangeFeedGap(cursor="a", first_unreadable_commit_id="01J"),
    errors.HistoricalVersionReclaimed(table_key="node:Craft", version=7),
    errors.ResourceLimit(resource="bytes", limit=1, actual=2),
    errors.QueryTimeout(limit_ms=1, elapsed_ms=2),
    errors.QueryMemoryExceeded(limit=1, needed=2),
    errors.CartesianProductRefused(variable="$m", limit=1, estimate=2),
    errors.RecoveryRequired("01J", "no"),
    errors.StorageError("no", kind="transient"),
    errors.FormatVersionError("no", found=5, floor=1, ceiling=4),
    errors.SidecarCorrupt("a", "no"),
    errors.SidecarTooNew("a", 9),
    errors.HandleForked(),
    errors.HandleClosed(),
    errors.SparkUnavailable("no"),
    blob_errors.ExternalBlobError(uri="s3://a/b", reason="is nothing"),
    blob_errors.BlobRangeError(start=7, end=None, length=3),
    damage.GraphDamaged(file="_schema.pg", reason="is missing", dataset="graph"),
    access_errors.RateLimited("enough", retry_after_s=1),
    access_errors.CommitOutcomeUnknown(branch="main", head_before=None),
    source_errors.MixedMutation(_DIAGNOSTICS, _SOURCE, query_name="q"),
    *(
        of(_DIAGNOSTICS, _SOURCE)
        for of in (
            source_errors.SourceError,
            source_errors.ParseError,
            source_errors.CatalogError,
            source_errors.TypeCheckError,
            source_errors.PlanError,
        )
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph in it, which no test of this file changes."""
    made = tmp_path_factory.mktemp("classes")
    place_atlas(made)
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    with serving_app(settings_for(folder / GRAPH)) as opened:
        yield opened


@pytest.fixture(scope="module")
def here(folder: Path) -> Iterator[omnigraph.Graph]:
    """The graph in its storage."""
    with omnigraph.open(folder / GRAPH, mode="ro") as graph:
        yield graph


@pytest.fixture(scope="module")
def there(client: httpx.Client) -> Iterator[omnigraph.RemoteGraph]:
    """The same graph behind its server."""
    with omnigraph.connect(str(client.base_url), retries=0) as graph:
        assert isinstance(graph, omnigraph.RemoteGraph)
        yield graph


def every_error() -> Iterator[OmnigraphError]:
    """Yield one error of each class; those that are not made above take a text alone."""
    made = {type(error): error for error in EXAMPLES}
    assert len(made) == len(EXAMPLES)
    for of in error_classes():
        yield made.get(of) or of("nothing works")


@pytest.mark.case("surfaces", 210)
@pytest.mark.case("surfaces", 785)
@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_in_the_library_over_http_and_in_a_shell(
    error: OmnigraphError,
    folder: Path,
    client: httpx.Client,
    here: omnigraph.Graph,
    there: omnigraph.RemoteGraph,
) -> None:
    name = type(error).__name__
    tabled = listed_errors()[name]

    def fail() -> None:
        raise error

    with failpoint("query.post_pin_pre_read", call=fail):
        answer = client.post("/query", json={"query": READ})
        printed = invoke("query", "--store", GRAPH, "-e", READ, "--json", cwd=folder)
        with pytest.raises(OmnigraphError) as embedded:
            here.query(READ)
        with pytest.raises(OmnigraphError) as served:
            there.query(READ)

    assert getattr(omnigraph, name) is type(error)
    assert embedded.value is error
    assert printed.code == tabled.exit_code
    assert printed.stderr.strip()
    document = json.loads(printed.stdout)
    assert (document["error"], document.get("code")) == (str(error), tabled.code)
    assert document.keys() - {"error", "code"} == {tabled.detail} - {None}
    if name not in SENT_BY_NO_SERVER | ANOTHER_HERE:
        assert answer.status_code == tabled.status
        body = answer.json()
        assert body.get("code") == ("internal" if tabled.status == 500 else tabled.code)
        assert body.keys() - {"error", "code"} == {tabled.detail} - {None}
        assert type(served.value) is type(error)
        assert _without_ids(str(served.value)) == _without_ids(body["error"])
        assert (served.value.code, served.value.exit_code) == (error.code, tabled.exit_code)
        assert vars(served.value).keys() >= vars(error).keys()


@pytest.mark.case("surfaces", 785)
@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
def test_an_error_without_its_detail_is_whole(error: OmnigraphError, folder: Path) -> None:
    of = type(error)
    bare: Answer = (of.status, {"error": "x"}, {"Omnigraph-Error": of.__name__, "Retry-After": "600"})
    with serving(*[bare] * 3) as script, script.remote() as graph:
        with pytest.raises(OmnigraphError) as raised:
            graph.schema()
        told = error_document(raised.value)
        for switch in ([], ["--json"]):
            printed = invoke("schema", "show", "--store", script.url, *switch, cwd=folder)
            assert printed.code == raised.value.exit_code
            assert "x" in printed.stderr

    assert told["error"] == "x"
    made = type(raised.value)
    if of.detail is None and of.__name__ not in SENT_BY_NO_SERVER - {"UnsupportedError"}:
        assert made is of
        assert vars(raised.value).keys() >= vars(error).keys()
    assert made.__name__ not in {"CommitOutcomeUnknown", "TransportError"}
    for name in dir(made):
        if not name.startswith("_"):
            getattr(raised.value, name)  # properties too


def _without_ids(text: str) -> str:
    """Return a text without the ids of requests, which differ."""
    return re.sub(r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "…", text).partition("\n")[0]
