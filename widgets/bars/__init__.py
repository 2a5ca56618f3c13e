"""What stands around the panes: title, tabs, filter, the same as a command, and what is said."""
