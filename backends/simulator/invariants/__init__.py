"""What must be true at each step of each run, by name; whatever breaks one is reported with the seed."""
