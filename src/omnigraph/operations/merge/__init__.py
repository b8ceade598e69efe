"""`merge`: where two branches meet, what each has done since, and publishing the result."""
