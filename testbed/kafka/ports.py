"""Loopback ports that stay ours while the process that should listen on them is down.

A port taken from the range for outgoing connections can be in use as somebody's source port (even as the
dialler's own: a client that keeps calling a dead port connects to itself) just when a killed broker wants it
back. So ports come from below that range, and a lock file holds each until the cluster is gone.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

from testbed.kafka.errors import TestbedError

_LOWEST = 14_000
_DEFAULT_EPHEMERAL = 32_768


class PortReservation:
    """Ports of 127.0.0.1 held for one cluster; ``release`` may be called twice."""

    def __init__(self, count: int) -> None:
        self._held: dict[int, IO[bytes]] = {}
        directory = Path(tempfile.gettempdir()) / f"ktriage-ports-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
        candidates = list(range(_LOWEST, _first_ephemeral()))
        random.shuffle(candidates)
        for port in candidates:
            if len(self._held) == count:
                break
            self._try(port, directory)
        if len(self._held) < count:
            self.release()
            raise TestbedError(f"there are no {count} free loopback ports from {_LOWEST} on")

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(self._held)

    def release(self) -> None:
        for lock in self._held.values():
            lock.close()
        self._held.clear()

    def _try(self, port: int, directory: Path) -> None:
        lock = (directory / str(port)).open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
        else:
            self._held[port] = lock


def _first_ephemeral() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return _DEFAULT_EPHEMERAL
    return first if first > _LOWEST + 1000 else 65_536
