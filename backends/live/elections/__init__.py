"""Designated elections: check, elect, read the result back, restore the assignment order."""
