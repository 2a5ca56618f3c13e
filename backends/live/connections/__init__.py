"""One connection to one node, and where they are kept."""
