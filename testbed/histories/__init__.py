"""Random histories of the simulator: faults, invariants and verdicts held against what really happened."""
