"""The bars around the panes: title, tabs, filter, the equivalent command, and messages."""
