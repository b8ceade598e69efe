"""`merge`: where two branches meet, what each did since, and publishing both."""
