"""The rules of Kafka's controller for a partition's leader, ISR and ELR.

One transition function (:mod:`~recovery.controller.transition`) that the simulator runs and the console predicts
with, the operations that use it, and the invariants that must hold after each of them.
"""
