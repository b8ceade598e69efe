"""Control files on a disk or in a store: locks, heartbeats, durability."""
