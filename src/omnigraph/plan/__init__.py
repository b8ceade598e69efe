"""Checked queries to operators."""
