"""The log dirs' command, carried out."""
