"""The live adapter against brokers that are served by the simulator: more partitions than a machine can hold."""
