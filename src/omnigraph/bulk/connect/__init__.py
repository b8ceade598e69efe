"""Reaching Spark: Java, the session, executors that can take part, and jobs that report their progress."""
