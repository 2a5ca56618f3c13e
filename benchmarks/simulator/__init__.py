"""How fast the simulator is, and what it takes for large clusters."""
