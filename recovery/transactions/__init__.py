"""Transactions that an unclean election has left open: their marker was on the branch that was cut off."""
