"""A client that was generated from an early edition of the description works as it was (section 2.15)."""

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from tests.support.atlas import MUTATIONS, craft, lines, place_atlas
from tests.support.http_app import serving_app, settings_for

READ = "query crafts() { match { $c: Craft } return { $c.code } }"


class OlderClient:
    """Calls as the published client does: a token everywhere, no Accept, null query values left out."""

    def __init__(self, client: httpx.Client, prefix: str) -> None:
        self._client, self._prefix = client, prefix

    def __call__(self, method: str, path: str, body: object = None, **query: str | None) -> httpx.Response:
        request = self._client.build_request(
            method,
            f"{self._prefix}{path}",
            json=body,
            params={name: value for name, value in query.items() if value is not None},
            headers={"Authorization": "Bearer whatever"},
        )
        del request.headers["accept"]
        answer = self._client.send(request, follow_redirects=False)
        assert answer.status_code == 200, answer.text
        return answer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One open server."""
    with serving_app(settings_for(place_atlas(tmp_path_factory.mktemp("older")))) as client:
        yield client


@pytest.mark.case("surfaces", 153)
@pytest.mark.parametrize("prefix", ["", "/graphs/default"], ids=["flat", "nested"])
def test_a_published_client_completes_its_work(prefix: str, server: httpx.Client) -> None:
    call, name = OlderClient(server, prefix), f"review/{len(prefix)}"
    code = f"OLD-{len(prefix)}"

    if not prefix:
        assert call("GET", "/healthz").json()["status"] == "ok"
    assert "main" in call("GET", "/branches").json()["branches"]
    made = call("POST", "/branches", {"name": name, "from": "main"}).json()
    assert (made["from"], made["name"], isinstance(made["uri"], str)) == ("main", name, True)
    change = {
        "query_source": MUTATIONS,
        "query_name": "add_craft",
        "params": {"code": code, "name": "old"},
        "branch": name,
    }
    changed = call("POST", "/change", change).json()
    assert (changed["branch"], changed["affected_nodes"], changed["affected_edges"]) == (name, 1, 0)
    read = call("POST", "/read", {"query_source": READ, "branch": name}).json()
    assert {"c.code": code} in read["rows"]
    assert isinstance(read["row_count"], int)
    merged = call("POST", "/branches/merge", {"source": name, "target": "main"}).json()
    assert merged["outcome"] in {"fast_forward", "merged"}
    commits = call("GET", "/commits", branch=None).json()["commits"]
    shown = call("GET", f"/commits/{commits[0]['graph_commit_id']}").json()
    assert isinstance(shown["manifest_version"], int)
    exported = call("POST", "/export", {"branch": "main", "table_keys": ["node:Craft"], "type_names": []})
    assert code.encode() in exported.content
    data = {"data": lines(craft(f"{code}-2")), "branch": name, "from": "main", "mode": "merge"}
    ingested = call("POST", "/ingest", data).json()
    assert ingested["base_branch"] == "main"
    assert ingested["tables"] == [{"table_key": "node:Craft", "rows_loaded": 1}]
    source = call("GET", "/schema").json()["schema_source"]
    applied = call("POST", "/schema/apply", {"schema_source": source}).json()
    assert (applied["supported"], applied["applied"], applied["step_count"]) == (True, False, 0)
    snapshot = call("GET", "/snapshot", branch=name).json()
    assert all(isinstance(table["row_count"], int) for table in snapshot["tables"])
    assert all(isinstance(table["table_version"], int) for table in snapshot["tables"])
    assert call("DELETE", f"/branches/{quote(name, safe='')}").json()["name"] == name
    runs = server.get(f"{prefix}/runs", headers={"Authorization": "Bearer whatever"})
    assert (runs.status_code, runs.json()["code"]) == (404, "not_found")
