"""Which version of what is the graph: the manifest, snapshots, commits."""
