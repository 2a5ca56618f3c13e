"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# No test asserts a timing, and a machine that is busy elsewhere stalls for longer than any deadline.
settings.register_profile("ktriage", deadline=None)
settings.load_profile("ktriage")
