"""A cluster's state as Parquet: what is written, how it is committed, and how it is found again."""
