"""Invariants by name, checked at each step of each run. A broken one is reported with the seed."""
