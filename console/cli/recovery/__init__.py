"""Runs the commands for offline partitions."""
