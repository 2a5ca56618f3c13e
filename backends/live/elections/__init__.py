"""Designated elections: check, elect, read the result back, revert the assignment order."""
