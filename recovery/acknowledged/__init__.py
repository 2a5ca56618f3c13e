"""What a choice of leader destroys of the acknowledged records, as far as it can be proved."""
