"""The rules of recovery, as pure functions over frozen values: no I/O, no clock, no randomness of its own."""
