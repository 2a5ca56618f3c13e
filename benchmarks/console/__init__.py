"""The console on large clusters: first frame, full picture, key latency while it refreshes, memory."""
