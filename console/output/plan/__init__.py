"""Plans, their application and its results, as tables and JSON."""
