"""A cluster's state as Parquet: how it is written, committed and found again."""
