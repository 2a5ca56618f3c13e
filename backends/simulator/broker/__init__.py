"""A broker: its disks, its logs, and its work as a leader and as a follower."""
