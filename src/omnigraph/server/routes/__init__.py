"""The routes: one small file for each group of them."""
