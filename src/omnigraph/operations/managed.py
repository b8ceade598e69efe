"""Graphs that a cluster manages: their schema and their life are the cluster's business."""

from omnigraph.core.errors import ClusterManaged
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot

CLUSTER_STATE = "__cluster/state.json"
_GRAPHS = "graphs"
_SUFFIX = ".omni"


def refuse_managed(root: GraphRoot) -> None:
    """Refuse a place inside of an established cluster: `<cluster>/graphs/<id>.omni`.

    Raises:
        ClusterManaged: a cluster is established there.
    """
    cluster, _, name = root.uri.rpartition(f"/{_GRAPHS}/")
    # An s3:// root without a bucket in front of `graphs` is a bucket of that name, and no cluster.
    if "/" in name or not name.endswith(_SUFFIX) or not cluster.strip("/") or cluster == "s3:":
        return
    place = GraphRoot(cluster, root.is_local)
    if open_adapter(place, Durability.PROCESS).exists(CLUSTER_STATE):
        raise ClusterManaged(f"{root.uri} belongs to the cluster at {cluster}: use cluster apply")
