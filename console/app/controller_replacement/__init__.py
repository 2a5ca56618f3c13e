"""The wizard that replaces a controller step by step."""
