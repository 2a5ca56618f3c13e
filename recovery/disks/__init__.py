"""Failed disks: what was on them, what a failure would do, and the danger of a broker with an empty disk."""
