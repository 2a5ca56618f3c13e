"""What a failed disk takes, what it would take, and what a broker that starts with an empty one could destroy."""
