"""Snapshots and the jobs over them, carried out."""
