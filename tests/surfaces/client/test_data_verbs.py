"""What a server tells of a graph beside its rows: finished recoveries and indexes."""

from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.server.serving import Serving
from omnigraph.wire.documents import index_status_document
from tests.support.http_app import listening, settings_for
from tests.support.parity import ADD, place_parity


@pytest.mark.case("surfaces", 683)
def test_a_server_tells_of_recoveries_and_indexes_as_the_storage_does(tmp_path: Path) -> None:
    place = place_parity(tmp_path)
    with omnigraph.open(place) as graph:
        with failpoint("write.post_table_commit", "raise:once"), pytest.raises(RecoveryRequired):
            graph.mutate(ADD, params={"code": "C-1"})
        graph.mutate(ADD, params={"code": "C-2"}, actor="act-mira")
        recoveries, indexes = graph.recoveries(), graph.index_status()
    serving = Serving.begin(settings_for(place))
    try:
        with listening(serving) as url, omnigraph.connect(url) as there:
            assert isinstance(there, RemoteGraph)
            assert there.recoveries() == recoveries != []
            assert there.recoveries()[0].created_at == recoveries[0].created_at
            assert there.index_status() == indexes
            assert any(table.indexes for table in indexes)
            with there.branch("june", "main") as june:
                assert june.index_status() == indexes
            document = httpx.get(f"{url}/indexes").json()
            assert document == index_status_document(indexes, uri=document["uri"], branch=None)
    finally:
        serving.close()
