"""What a cluster can be asked and told, whatever stands behind it (design: "backends/base").

An answer says where it came from. "Not answered", "not allowed" and "not offered by this cluster" are values
(:class:`recovery.model.Unknown`), never an empty list or a zero.
"""
