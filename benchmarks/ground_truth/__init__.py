"""Random histories on a real cluster: checks what ktriage claims against the disks and an independent consumer."""
