"""The quorum's commands, carried out."""
