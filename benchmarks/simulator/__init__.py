"""Speed of the simulator, and its time and memory for large clusters."""
