"""The operators of a query, one file each, over the binding table."""
