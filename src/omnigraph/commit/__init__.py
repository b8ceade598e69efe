"""The publish protocol: sidecars, the one door, recovery."""
