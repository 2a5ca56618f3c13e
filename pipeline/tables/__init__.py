"""The Delta tables of the pipeline: their schemas, and how they are opened, appended to and read."""
