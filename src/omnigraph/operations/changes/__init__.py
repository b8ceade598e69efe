"""What changed: `diff`, `commit_changes`, the feed and the baseline it starts from."""
