"""The simulated cluster on the wire: one listener for each broker and controller, speaking Kafka's protocol."""
