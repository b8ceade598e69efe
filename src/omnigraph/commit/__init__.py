"""The publish protocol: sidecars, the publisher, recovery."""
