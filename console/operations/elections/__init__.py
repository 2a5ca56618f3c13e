"""Elections: what is chosen, asked, sent, and put back after an interruption."""
