"""What an election means for consumer groups and transactions, and what puts it right."""
