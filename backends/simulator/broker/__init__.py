"""A broker: its disks, its logs, what it does as a leader and as a follower."""
