"""A whole Kafka cluster in one process, on one seeded clock.

It is the second adapter, for rehearsals and for measurements. The same seed and scenario give the same history,
byte for byte. Only the adapter, the state file and the served cluster touch real time and real networks.
"""
