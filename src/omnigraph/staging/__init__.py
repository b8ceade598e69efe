"""An intended change to durable but invisible effects."""
