"""Scenarios: YAML files with a cluster, the faults that happen to it, and what the operator meets."""
