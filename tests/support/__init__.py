"""Builders, fakes and plugins that tests import by name."""
