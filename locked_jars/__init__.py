"""Jars of other projects, fetched from Maven Central exactly as a lock file names them."""
