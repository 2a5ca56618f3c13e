"""The commands for offline partitions, carried out."""
