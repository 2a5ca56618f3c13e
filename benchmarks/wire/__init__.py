"""The live adapter against brokers served by the simulator, with more partitions than real ones hold here."""
