"""What happened to each partition, from snapshots over time."""
