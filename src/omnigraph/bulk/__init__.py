"""Data in bulk: the same outcome as `exec`, for data that is larger than memory."""
