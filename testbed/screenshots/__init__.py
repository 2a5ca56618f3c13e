"""Pictures for README: the console's panes, and the output of a command."""
