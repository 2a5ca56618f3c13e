"""Loopback ports that stay reserved while their broker is down.

A port from the ephemeral range can become the source port of another connection while a broker is down (a client
that keeps connecting to a dead port can even connect to itself), and then the broker cannot start again. So ports
come from below that range, and a lock file reserves each of them until the cluster is gone.
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
    """Ports of 127.0.0.1 for one cluster; ``release`` may be called twice."""

    def __init__(self, count: int) -> None:
        self._locks: dict[int, IO[bytes]] = {}
        directory = Path(tempfile.gettempdir()) / f"ktriage-ports-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
        candidates = list(range(_LOWEST, _first_ephemeral()))
        random.shuffle(candidates)
        for port in candidates:
            if len(self._locks) == count:
                break
            self._try(port, directory)
        if len(self._locks) < count:
            self.release()
            raise TestbedError(f"fewer than {count} loopback ports are free from {_LOWEST} on")

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(self._locks)

    def release(self) -> None:
        for lock in self._locks.values():
            lock.close()
        self._locks.clear()

    def _try(self, port: int, directory: Path) -> None:
        lock = (directory / str(port)).open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
        else:
            self._locks[port] = lock


def _first_ephemeral() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return _DEFAULT_EPHEMERAL
    return first if first > _LOWEST + 1000 else 65_536
