"""The choice of leaders over Spark, by Arrow batches: the same answer as :mod:`recovery` on every row, map only."""
