"""From an intended change to durable but invisible effects."""
