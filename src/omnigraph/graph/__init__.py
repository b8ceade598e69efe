"""`Graph`: the object a Python user holds."""
