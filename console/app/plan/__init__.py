"""The plan in the console: choose, edit, save, compare, confirm, apply."""
