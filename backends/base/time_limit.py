"""How long a call may take, in the time of the cluster that is asked."""

from __future__ import annotations

import asyncio
from typing import Protocol


class _Asked(Protocol):
    @property
    def simulated(self) -> bool: ...


def time_limit(asked: _Asked, seconds: float) -> asyncio.Timeout:
    """As ``asyncio.timeout``. None for a simulated cluster: its calls end in virtual time, by the limits of the
    requests themselves, and how busy this machine is must not decide what is known of it.
    """
    return asyncio.timeout(None if asked.simulated else seconds)
