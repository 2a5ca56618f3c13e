"""Not shipped with the product: a real Kafka, the demo on it, and the screenshots.

``kafka``: clusters of real brokers and controllers on this machine, for tests, benchmarks and the demo.
``demo``: ``make demo-kafka``. ``screenshots``: the pictures of README, drawn by the console itself.
"""
