"""Lance tables and control files: the only package that imports lance."""
