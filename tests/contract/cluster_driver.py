"""What a contract test does to a cluster, of any kind; every call waits for its effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeVar

from backends.base.protocol import Backend

T = TypeVar("T")
Acks = Literal["0", "1", "all"]

BROKERS = (1, 2, 3)
SECONDS = 60.0
"""The longest time for any wait, by the cluster's own clock."""


class ClusterDriver(Protocol):
    """Brokers 1, 2 and 3, each with two log dirs, the ELR on, automatic leader balancing off, some controllers.

    Only ``backend`` is tested; all other calls bypass it. Each call returns when the cluster shows its effect, and
    raises if it never does.
    """

    def backend(self, *denied: str) -> AbstractAsyncContextManager[Backend]:
        """An open backend of a caller with all permissions but ``denied``: "READ topic orders", "ALTER cluster".

        One caller with denials at a time.
        """
        ...

    def create_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        """One partition for each entry of ``assignment``, each with a leader and with logs on all its brokers.

        ``config`` may hold ``min.insync.replicas``.
        """
        ...

    def produce(self, topic: str, count: int, partition: int = 0, acks: Acks = "all") -> None:
        """``count`` records, each acknowledged. Raises if one is refused."""
        ...

    def kill(self, *brokers: int) -> None:
        """SIGKILL; returns when the brokers are fenced, if another broker is left to ask."""
        ...

    def shut_down(self, *brokers: int) -> None:
        """A controlled shutdown; returns when the brokers are fenced, if another broker is left to ask."""
        ...

    def start(self, *brokers: int) -> None:
        """Returns when all of them are unfenced, and all brokers that do not run are fenced."""
        ...

    def pause(self, broker: int) -> None:
        """The broker hangs from now on: it accepts connections and does not answer; it may not be fenced yet."""
        ...

    def resume(self, broker: int) -> None:
        """Returns when the broker is unfenced."""
        ...

    def break_log_dir(self, broker: int, index: int) -> None:
        """Every access to log dir ``index`` fails from now on. Index 0 has the metadata log: do not break it."""
        ...

    def reassign(self, topic: str, partition: int, replicas: Sequence[int] | None) -> None:
        """A reassignment by another client; returns when it is accepted, not done. None cancels it."""
        ...

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """Returns when the log start of every live replica is ``before``."""
        ...

    def bring_all_up(self) -> None:
        """Returns when every broker runs unfenced, with empty disks for broken ones; lost data stays lost."""
        ...

    async def until(self, ask: Callable[[], Awaitable[T]], condition: Callable[[T], bool], what: str) -> T:
        """The first answer that fulfils the condition. Raises if none does."""
        ...
