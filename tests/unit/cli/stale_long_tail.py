"""The stale long tail: a plan that cuts off records, and the same after its election."""

from __future__ import annotations

TAIL = ("--simulate", "stale-long-tail")
AGREED = ("--yes", "--reason", "a test")
