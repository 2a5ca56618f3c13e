"""How fast a rescue reads the logs of offline partitions, against a bare consumer."""
