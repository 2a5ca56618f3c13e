"""A simulated run from command to command: what was sent, when, and a checkpoint to continue from."""
