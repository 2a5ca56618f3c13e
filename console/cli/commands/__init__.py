"""What typer sees: one module a command, with its options, examples and nothing that --help need not load."""
