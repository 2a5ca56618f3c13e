"""What each failure would take offline, before it happens."""
