"""Scenarios: YAML files that say what a cluster is, what happens to it, and what the operator meets."""
