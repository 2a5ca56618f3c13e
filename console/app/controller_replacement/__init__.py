"""A controller's replacement, step by step on a screen of its own."""
