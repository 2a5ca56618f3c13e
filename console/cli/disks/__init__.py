"""Runs ``ktriage log-dirs``."""
