"""Consumer groups: where their committed offsets lie once an election has cut off a part of the log."""
