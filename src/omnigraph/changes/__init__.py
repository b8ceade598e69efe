"""What differs between two points of the history."""
