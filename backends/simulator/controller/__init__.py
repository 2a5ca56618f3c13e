"""A controller: the rules of :mod:`recovery.controller` behind a metadata log that replicates."""
