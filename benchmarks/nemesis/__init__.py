"""Faults in the middle of a recovery on real Kafka: nothing stays in a wrong order, or in flight."""
