"""Records that an election would cut off: read before it, and written back after it."""
