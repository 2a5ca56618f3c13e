"""What a person or a program reads: tables, lines, JSON with a schema, progress on stderr."""
