"""Connections to nodes: transport, one connection, pools, hedged requests."""
