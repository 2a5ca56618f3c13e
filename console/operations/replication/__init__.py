"""Back to full strength: new replicas for a broker that does not come back, throttled, and its end."""
