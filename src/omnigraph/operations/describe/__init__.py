"""What a type holds: `describe.py` tells the story, `columns.py` sums up values, `degrees.py` edges."""
