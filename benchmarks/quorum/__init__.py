"""``quorum status`` and ``log-dirs`` against Kafka's own tools."""
