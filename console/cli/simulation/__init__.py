"""Runs the verbs of ``ktriage simulate``."""
