"""The requests that can be sent to a cluster: one protocol, implemented by the live adapter and the
simulator.

An answer says where it came from. "Not answered", "not allowed" and "not offered by this cluster" are values
(:class:`recovery.model.Unknown`), never an empty list or a zero.
"""
