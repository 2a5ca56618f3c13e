"""Runs the verbs of ``ktriage quorum``."""
