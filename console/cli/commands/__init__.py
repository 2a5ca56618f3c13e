"""The typer commands: one module for each, with its options and examples, and no import that --help does not
need.
"""
