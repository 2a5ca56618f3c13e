"""Messages as bytes: kio's, those that it has not, and answers of many rows as columns."""
