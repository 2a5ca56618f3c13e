"""The operations that the command line and the console share: check, confirm, send, record."""
