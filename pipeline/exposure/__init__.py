"""What would fail next: each broker, rack, log dir and pair that shares a partition."""
