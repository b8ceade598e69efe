"""The prompt: `session.py` runs what is typed, `statement.py` says when it is complete, `prompt.py` asks."""
