"""Runs ``ktriage snapshot`` and ``ktriage pipeline``."""
