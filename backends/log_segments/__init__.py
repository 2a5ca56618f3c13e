"""Kafka's segment files and record batches, read with the standard library only (Python 3.8 and newer)."""
