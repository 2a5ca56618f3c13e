"""Rescue directories: what an election cuts off, as Kafka's own segment files with manifests (docs/files.md)."""
