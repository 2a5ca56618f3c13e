"""A whole Kafka cluster in one process on one seeded clock: the second adapter, for rehearsals and for measuring.

The same seed and scenario give the same history, byte for byte. Nothing here knows real time, real randomness
or a real network, except the adapter and the state file at the edge.
"""
