"""Rescues and what was written back, as tables and JSON."""
