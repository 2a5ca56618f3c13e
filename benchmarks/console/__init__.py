"""The console on large clusters: first frame, full picture, keys while it refreshes, memory."""
