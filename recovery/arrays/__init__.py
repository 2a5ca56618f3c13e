"""The rules for many partitions at once, as numpy and Arrow arrays: ranking, loss and the choice of a leader.

Each result is the one of the rule for a single partition (:mod:`recovery.ranking`, :mod:`recovery.loss`,
:mod:`recovery.strategy`). numpy and Arrow take 0.3 s to load, so a module of this room is imported only where there
are many partitions, and by the jobs on Spark.
"""
