"""The metadata quorum and its changes, as tables and JSON."""
