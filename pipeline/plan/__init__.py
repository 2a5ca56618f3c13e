"""The choice of leaders on Spark, in Arrow batches: for every row the same result as :mod:`recovery`, without
a shuffle.
"""
