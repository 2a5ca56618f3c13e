"""Designated elections: checked, held, read back, restored."""
