"""Two sides of a branch made one: what is taken, what is kept, what contradicts."""
