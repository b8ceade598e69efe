"""One request to each route of a graph, as complete as it must be to get as far as who may do it."""

import json
import re
from typing import Any

from omnigraph.server.route import GraphRoute

READ = "query q() { match { $m: Mission } return { $m.title } }"
ADD = 'query q() { insert Mission { title: "%s" } }'
NDJSON = {"Content-Type": "application/x-ndjson"}
ARROW = "application/vnd.apache.arrow.stream"
LINE = json.dumps({"type": "Mission", "data": {"title": "Loaded"}})
BLOB = {"entity": "node", "type": "Nonsense", "id": "x", "property": "scan"}
REQUESTS: dict[str, dict[str, Any]] = {
    "query": {"json": {"query": READ}},
    "read": {"json": {"query_source": READ}},
    "mutate": {"json": {"query": ADD % "x"}},
    "mutate_if_graph_commit": {"json": {"query": ADD % "x"}, "headers": {"Omnigraph-If-Graph-Commit": "x"}},
    "change": {"json": {"query": ADD % "x"}},
    "load": {"json": {"data": LINE}},
    "ingest": {"json": {"data": LINE}},
    "loadNdjson": {"content": LINE, "headers": NDJSON},
    "loadArrow": {"content": b"", "params": {"type": "Nonsense"}, "headers": {"Content-Type": ARROW}},
    "loadNdjsonChecked": {"content": LINE, "headers": NDJSON},
    "loadArrowChecked": {"content": b"", "params": {"type": "Nonsense"}, "headers": {"Content-Type": ARROW}},
    "upgradeBranch": {"json": {}},
    "getEntity": {"params": {"type": "Nonsense", "id": "x"}},
    "export": {"json": {"type_names": ["Nonsense"]}},
    "captureChangeBaseline": {"json": {"type": ["Nonsense"]}},
    "createBranch": {"json": {"name": "new"}},
    "mergeBranches": {"json": {"source": "nowhere"}},
    "planSchema": {"json": {"schema_source": "node Mission { title: String @key }"}},
    "applySchema": {"json": {"schema_source": "nonsense"}},
    "checkQuery": {"json": {"query": READ}},
    "diffBranches": {"params": {"from": "june", "to": "main", "type": "Nonsense"}},
    "pollChanges": {"params": {"type": "Nonsense"}},
    "getTable": {"params": {"type": "Nonsense"}},
    "describeType": {"params": {"type": "Nonsense"}},
    "explainQuery": {"json": {"query": READ}},
    "getBlob": {"params": BLOB},
    "headBlob": {"params": BLOB},
}
_WORDS = {"branch": "june", "commit_id": "x", "name": "titles", "write_id": "a-write-of-nobody-1"}


def path_of(route: GraphRoute, **words: str) -> str:
    """Return the path of a route with a word in each place that takes one."""
    return re.sub(r"\{(\w+)\}", lambda place: (_WORDS | words)[place[1]], route.path)
