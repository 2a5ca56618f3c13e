"""One cluster in the console: who asks it and when, what was seen, what is planned, whether it may be changed."""
