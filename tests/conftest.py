"""Settings of every test."""

from __future__ import annotations

from hypothesis import settings

# No test asserts a duration, and on a busy machine any deadline can be missed.
settings.register_profile("ktriage", deadline=None)
settings.load_profile("ktriage")
