"""The simulator's commands, carried out."""
