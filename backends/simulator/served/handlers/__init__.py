"""Answers to Kafka requests, one module for each group of APIs."""
