"""The work itself, the same for the command line and the console: asked for, checked, sent, recorded."""
