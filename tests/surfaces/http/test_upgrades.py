"""`POST /branches/{branch}/upgrade`: main's schema for a branch, over HTTP and through the clients."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.remote.outcome import WriteFate
from omnigraph.core.errors import UnsupportedError
from omnigraph.graph.opening import open as open_graph
from omnigraph.server.settings import ServerLimits
from omnigraph.wire.responses import ErrorOutput
from omnigraph.wire.schema_responses import SchemaApplyOutput
from tests.support.atlas import ATLAS, place_atlas
from tests.support.gates import policy_of
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of
from tests.support.in_process import invoke
from tests.support.proxy import store_proxy

NOTED = ATLAS.replace("title: String @key", "title: String @key\n    note: String? @index")
DIFFERENT = ATLAS.replace("title: String @key", "title: String @key\n    note: I32?")
ADD = 'query q() { insert Mission { title: "of june" } }'
JUNE = "/branches/review%2Fjune/upgrade"
TOKEN = "token-of-ann-0123456789"
WRITE = {"Omnigraph-Write-Id": "an-upgrade-of-june-01"}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph whose main has another schema than its branches; one has a row, another a schema of its own."""
    place = place_atlas(tmp_path)
    with open_graph(place) as graph:
        for name in ("review/june", "july", "august"):
            graph.create_branch(name)
        graph.mutate(ADD, branch="review/june")
        graph.apply_schema(DIFFERENT, branch="august")
        graph.apply_schema(NOTED)
    return place


@pytest.fixture
def client(graph: Path) -> Iterator[httpx.Client]:
    with serving_app(settings_for(graph)) as client:
        yield client


def upgraded(client: httpx.Client, path: str = JUNE, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - as httpx
    answer = client.post(path, **request)
    assert answer.status_code == 200, answer.text
    SchemaApplyOutput.model_validate(answer.json(), strict=True)
    found: dict[str, Any] = answer.json()
    return found


def schema(client: httpx.Client, branch: str) -> str:
    return str(client.get("/schema", params={"branch": branch}).json()["schema_source"])


def commits(client: httpx.Client, branch: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/commits", params={"branch": branch}).json()["commits"]
    return found


@pytest.mark.case("surfaces", 882)
def test_an_upgrade_is_one_commit_and_leaves_the_rows(client: httpx.Client) -> None:
    before = commits(client, "review/june")

    made = upgraded(client, json={"message": "as main", "index": False, "allow_data_loss": False})
    after = commits(client, "review/june")
    again = upgraded(client, json={})

    assert (made["applied"], made["branch"], made["index_commit"]) == (True, "review/june", None)
    assert [item["property"] for item in made["pending_indexes"]] == []
    assert made["commit"] == after[0]
    assert after[1:] == before
    assert after[0]["message"] == "as main"
    assert schema(client, "review/june") == NOTED
    titles = "query q() { match { $m: Mission } return { $m.title } order { $m.title } }"
    read = client.post("/query", json={"query": titles, "branch": "review/june"}).json()["rows"]
    assert [row["m.title"] for row in read] == ["Grand Tour", "Jupiter", "of june"]
    assert (again["applied"], again["commit"]) == (False, None)
    assert commits(client, "review/june") == after


@pytest.mark.case("surfaces", 882)
@pytest.mark.parametrize("request_", [{}, {"json": {}}, {"json": None, "content": b"null"}])
def test_the_body_may_be_left_out(client: httpx.Client, request_: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"} if "content" in request_ else {}

    made = upgraded(client, **request_, headers=headers)

    assert made["applied"] is True
    assert made["index_commit"]["actor_id"] == "omnigraph:maintenance"
    assert schema(client, "review/june") == NOTED


@pytest.mark.case("surfaces", 883)
def test_what_cannot_be_upgraded_is_refused_and_stays(client: httpx.Client) -> None:
    before = commits(client, "august")

    refused = client.post("/branches/august/upgrade", json={})

    error_of(refused, 409, "conflict")
    ErrorOutput.model_validate(refused.json(), strict=True)
    assert {item["kind"] for item in refused.json()["merge_conflicts"]} == {"schema_conflict"}
    assert (schema(client, "august"), commits(client, "august")) == (DIFFERENT, before)
    assert "main has the newest schema" in error_of(client.post("/branches/main/upgrade"), 400, "bad_request")
    error_of(client.post("/branches/nowhere/upgrade", json={}), 404, "not_found")
    error_of(client.post("/branches/a%2F%2Fb/upgrade", json={}), 404, "not_found")
    error_of(client.get(JUNE), 405, "method_not_allowed")


@pytest.mark.case("surfaces", 883)
def test_a_body_that_is_none_is_refused_and_nothing_is_done(client: httpx.Client) -> None:
    before = commits(client, "review/june")
    bodies: tuple[object, ...] = ({"index": "no"}, {"allow_data_loss": 1}, {"message": 7}, [], "x")
    for body in bodies:
        error_of(client.post(JUNE, json=body), 400, "bad_request")
    error_of(client.post(JUNE, json={"message": "x" * 2**20}), 413, "bad_request")
    error_of(client.post(JUNE, content=b"{}", headers={"Content-Type": "text/plain"}), 415, "bad_request")
    error_of(
        client.post(JUNE, content=b"{", headers={"Content-Type": "application/json"}), 400, "bad_request"
    )

    assert commits(client, "review/june") == before


@pytest.mark.case("surfaces", 883)
def test_only_who_may_change_its_schema_upgrades_a_branch(graph: Path) -> None:
    policy = policy_of(
        "read", "schema_apply; target_branch_scope: unprotected", protected="main, july, absent"
    )
    with serving_app(settings_for(graph, tokens={"ann": TOKEN}, policy=policy)) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        denied = [client.post(f"/branches/{name}/upgrade") for name in ("july", "absent")]
        allowed = client.post(JUNE)
        with (
            pytest.raises(omnigraph.PolicyDenied),
            omnigraph.connect(str(client.base_url), token=TOKEN) as it,
        ):
            it.upgrade_branch("july")

    texts = {
        error_of(answer, 403, "forbidden").replace(name, "NAME")
        for answer, name in zip(denied, ("july", "absent"), strict=True)
    }
    assert len(texts) == 1
    assert allowed.status_code == 200
    assert allowed.json()["commit"]["actor_id"] == "ann"


@pytest.mark.case("surfaces", 883)
def test_an_upgrade_counts_against_its_callers_share(graph: Path) -> None:
    policy = policy_of("read", "schema_apply; target_branch_scope: unprotected", protected="main, july")
    limits = ServerLimits(actor_bytes=255)
    with serving_app(settings_for(graph, tokens={"ann": TOKEN}, policy=policy, limits=limits)) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        error_of(client.post(JUNE), 429, "too_many_requests")
        error_of(client.post("/branches/july/upgrade"), 403, "forbidden")  # before a share is asked for
        assert schema(client, "review/june") != NOTED


@pytest.mark.case("surfaces", 884)
def test_a_named_upgrade_is_carried_out_once_and_can_be_asked_for(client: httpx.Client) -> None:
    made = upgraded(client, headers=WRITE)
    before = commits(client, "review/june")

    found = client.get(f"/writes/{WRITE['Omnigraph-Write-Id']}").json()
    again = client.post(JUNE, headers=WRITE)
    refused = client.post("/branches/august/upgrade", headers={"Omnigraph-Write-Id": "an-upgrade-of-august"})
    kept = client.get("/writes/an-upgrade-of-august").json()

    assert (found["state"], found["status"], found["answer"]) == ("done", 200, made)
    error_of(again, 400, "bad_request")
    assert (kept["status"], kept["error_class"], kept["answer"]) == (409, "MergeConflicts", refused.json())
    assert commits(client, "review/june") == before


@pytest.mark.case("surfaces", 884)
def test_an_upgrade_whose_answer_is_lost_is_found_and_does_no_harm_again(client: httpx.Client) -> None:
    with losing(client) as url, omnigraph.connect(url) as graph:
        assert isinstance(graph, RemoteGraph)
        with pytest.raises(omnigraph.CommitOutcomeUnknown) as lost:
            graph.upgrade_branch("review/june", index=False)
        outcome = graph.outcome_of(lost.value)

    with omnigraph.connect(str(client.base_url)) as graph:
        again = graph.upgrade_branch("review/june")
        assert (outcome.fate, outcome.commit) == (WriteFate.LANDED, graph.commits(branch="review/june")[0])
    assert lost.value.branch == "review/june"
    assert again.commit is None


@contextmanager
def losing(client: httpx.Client) -> Iterator[str]:
    """Give the address of a proxy that drops the answers to writes."""
    with store_proxy(str(client.base_url)) as proxy:
        proxy.drops = lambda request: request.kind == "POST"
        yield proxy.endpoint


@pytest.mark.case("surfaces", 884)
@pytest.mark.parametrize("flags", [("--engine", "local"), ("--master", "local[1]")])
def test_a_server_upgrades_in_its_own_process(
    client: httpx.Client, tmp_path: Path, flags: tuple[str, str]
) -> None:
    outcome = invoke(
        *("branch", "upgrade", "review/june", "--server", str(client.base_url), *flags), cwd=tmp_path
    )

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "a server takes none of --engine and --master: leave them out" in outcome.stderr
    assert schema(client, "review/june") != NOTED
    with omnigraph.connect(str(client.base_url)) as graph:
        for options in ({"engine": "spark"}, {"master": "local[1]"}, {"actor": "ann"}, {"progress": print}):
            with pytest.raises(UnsupportedError, match=f"a server takes no {next(iter(options))}"):
                graph.upgrade_branch("review/june", **options)
        assert graph.upgrade_branch("review/june", engine="local").commit is not None


@pytest.mark.case("surfaces", 889)
def test_rows_of_a_schema_change_are_written_by_the_server_and_not_by_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_atlas(tmp_path)
    without_mass = ATLAS.replace("    mass_kg: F64?\n", "")
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")  # which a load of a program here would go to
    with serving_app(settings_for(place)) as client:
        client.post("/branches", json={"name": "review/june"})

        applied = client.post(
            "/schema/apply", json={"schema_source": without_mass, "allow_data_loss": True, "index": False}
        )
        made = upgraded(client, json={"allow_data_loss": True, "index": False})

        assert applied.status_code == 200, applied.text
        assert made["applied"] is True
        assert schema(client, "review/june") == without_mass
