"""The metadata log: a million records folded, and one partition found in a hundred megabytes."""
