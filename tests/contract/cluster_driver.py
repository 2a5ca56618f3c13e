"""What a test does to a cluster, whatever the cluster is; everything that is done is waited for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeVar

from backends.base.protocol import Backend

T = TypeVar("T")
Acks = Literal["0", "1", "all"]

BROKERS = (1, 2, 3)
SECONDS = 60.0
"""How long anything may take, by the cluster's own clock."""


class ClusterDriver(Protocol):
    """Brokers 1, 2 and 3, each with two log dirs, the ELR on, automatic leader balancing off, some controllers.

    ``backend`` is the only thing that is tested; everything else goes past it. Each call comes back when the
    cluster shows that it is done, and raises where it does not come to that.
    """

    def backend(self, *denied: str) -> AbstractAsyncContextManager[Backend]:
        """An open backend of a caller who may do all but what is ``denied``: "READ topic orders", "ALTER cluster".

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
        """``count`` records, each acknowledged. Raises where one is refused."""
        ...

    def kill(self, *brokers: int) -> None:
        """SIGKILL; fenced when it returns, where a broker is left that could tell."""
        ...

    def shut_down(self, *brokers: int) -> None:
        """A controlled shutdown; fenced when it returns, where a broker is left that could tell."""
        ...

    def start(self, *brokers: int) -> None:
        """Every one of them unfenced when it returns."""
        ...

    def pause(self, broker: int) -> None:
        """It hangs from now on: connections are taken, nothing is answered; it need not be fenced yet."""
        ...

    def resume(self, broker: int) -> None:
        """Unfenced when it returns."""
        ...

    def break_log_dir(self, broker: int, index: int) -> None:
        """Every access to log dir ``index`` fails from now on. Index 0 holds the metadata: it is not broken."""
        ...

    def reassign(self, topic: str, partition: int, replicas: Sequence[int] | None) -> None:
        """What somebody else asks the controller for; accepted when it returns, not carried out. None cancels."""
        ...

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """The log start of every live replica is ``before`` when it returns."""
        ...

    def bring_all_up(self) -> None:
        """Every broker runs and is unfenced, with empty disks for broken ones; what was lost stays lost."""
        ...

    async def until(self, ask: Callable[[], Awaitable[T]], condition: Callable[[T], bool], what: str) -> T:
        """The first answer that fulfils the condition. Raises where none does."""
        ...
