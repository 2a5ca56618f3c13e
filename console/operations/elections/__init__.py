"""Elections: the choice, the question, the requests, and the restore after an interruption."""
