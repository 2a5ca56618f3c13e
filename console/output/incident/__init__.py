"""The report of an incident and the hand-over, as Markdown, HTML and JSON."""
