"""Structured Streaming over the metadata logs of many clusters: typed records, folded into incidents."""
