"""The choice of leaders as Spark SQL: the same answer as :mod:`recovery` on every row, map only."""
