"""The console: a Textual app over the same actions that the command line runs."""
