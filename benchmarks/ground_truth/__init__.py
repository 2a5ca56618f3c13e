"""Random histories on a real cluster: what ktriage promises, held against the disks and an independent consumer."""
