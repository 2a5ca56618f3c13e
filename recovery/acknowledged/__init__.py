"""Which acknowledged records a choice of leader loses, as far as that can be proved."""
