"""What was read of a cluster or of a disk, as tables and JSON."""
