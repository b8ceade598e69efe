"""Plans and snapshots to rows, or to an intended change."""
