"""The one reader of Lance's own files: versions, transactions, deletions, checksums."""
