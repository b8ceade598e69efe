"""Finish, or undo, what a dead writer left behind."""
