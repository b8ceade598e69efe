"""Tables and manifests that cannot be read any more: what is left of them, and the quarantine."""
