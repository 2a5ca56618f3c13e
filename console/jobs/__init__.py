"""The jobs of an operator: each room holds the operation and its texts, for screens and commands."""
