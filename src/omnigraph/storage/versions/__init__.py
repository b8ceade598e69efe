"""Versions of one table: which is newest, where a ref starts, and what differs between two of them."""
