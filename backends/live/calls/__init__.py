"""One module per Kafka call: the request, what the answer means, and its errors."""
