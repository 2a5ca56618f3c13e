"""Persists a run as an event log and replays it.

The file holds the scenario, the seed, every request of the operator that changes something, as it was sent, with
its time, and the current time.
Opening it replays these, and checks that the history is the same.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.garbage_collection import without_collection
from backends.simulator.in_memory.memory_cluster import MemoryCluster
from backends.simulator.in_memory.virtual_loop import VirtualLoop
from backends.simulator.loop import SECOND
from backends.simulator.network import NetworkNode, NetworkRole
from backends.simulator.scenario.build import Scenario
from backends.simulator.session import checkpoint, state_file
from backends.simulator.session.state_file import FORMAT, StateError
from backends.simulator.simulation import Simulation

if TYPE_CHECKING:
    from backends.base.protocol import Progress

WORTH_KEEPING = 20_000
"""A replay of at least so many steps (about a second) ends with a checkpoint."""
LARGE = 20_000
"""Partitions."""

Shares = Callable[[], None]


class SessionStore:
    """The state file of one scenario and seed at ``path``; None saves nothing.

    With ``shares`` a saved state that another process holds is read as it was saved: ``shares`` is called, nothing
    is written, and a change raises StateError. Open it with :meth:`lock`, then :meth:`simulation`. Call ``save``
    after everything that moves time. ``progress`` is told how far a replay is.
    """

    def __init__(
        self, scenario: Scenario, seed: int, path: Path | None, shares: Shares | None = None
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._path = path
        self._lock: int | None = None
        self._sent: list[dict[str, Any]] = []
        self._simulation: Simulation | None = None
        self._shares = shares
        self._borrowed = False
        self.progress: Progress | None = None

    def lock(self) -> None:
        """Raises StateError while another process holds the lock and the state is not shared, or if the file
        cannot be written.

        Creates no lock beside a file that is not a state of this scenario and seed.
        """
        if self._path is None or self._lock is not None:
            return
        state_file.own(self._path, self._scenario, self._seed)
        path = state_file.lock_path(self._path)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StateError(f"{self._path}: the state cannot be written there: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A reset may have deleted the opened lock file meanwhile: then the lock excludes no other process.
            current = os.path.samestat(os.fstat(handle), path.stat())
        except OSError:
            current = False
        if not current:
            os.close(handle)
            if self._shares is None or not self._path.exists():
                raise StateError(self._in_use)
            self._borrowed = True
            self._shares()
            return
        self._lock = handle

    def unlock(self) -> None:
        """May be called twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def cluster(self) -> MemoryCluster:
        """The cluster as the last command left it, or as the operator meets it first. Raises StateError."""
        state = self._read()
        with without_collection():
            if state is None:
                cluster = await self._replayed([], self._scenario.operator_at)
            else:
                try:
                    self._sent = list(state["sent"])
                    cluster = await self._replayed(self._sent, state["now"])
                    history = state["history"]
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    message = f"{self._path}: not a simulation's state ({error}); {self._reset}"
                    raise StateError(message) from None
                if history != cluster.simulation.world.history.events_digest():
                    raise StateError(
                        f"{self._path}: a replay gives another history with this version; {self._reset}"
                    )
        if len(cluster.simulation.world.image.partitions) >= LARGE:
            gc.freeze()  # a large run keeps its objects; without this every collection would visit them
        self._simulation = cluster.simulation
        return cluster

    def attach(self, simulation: Simulation) -> MemoryCluster:
        """The nodes of a simulation. What is sent to them is noted."""
        return MemoryCluster(simulation, VirtualLoop(simulation), self.sent)

    async def _replayed(self, sent: list[dict[str, Any]], now: int) -> MemoryCluster:
        """The run at ``now``, continued from its checkpoint if there is one. A long replay ends with a new
        checkpoint.
        """
        if self.progress is not None:
            self.progress("building the simulated cluster", 0, 0)
        simulation, done = self._from_checkpoint(sent, now)
        before = simulation.world.loop.steps
        cluster = self.attach(simulation)
        if (tell := self.progress) is not None:
            end = now // SECOND
            cluster.watch(lambda: tell("replaying the incident, second", simulation.now // SECOND, end))
        for row in sent[done:]:
            await cluster.come_to(row["at"])
            cluster.replay(NetworkNode(NetworkRole(row["role"]), row["to"]), b64decode(row["frame"]))
        await cluster.come_to(now)
        cluster.watch(None)
        own = not self._borrowed and not cluster.replaying
        place = self._checkpoint if own else None
        if place is not None and simulation.world.loop.steps - before >= WORTH_KEEPING:
            checkpoint.write(place, self._header(sent, now), simulation)
            checkpoint.delete_old(place.parent)
        return cluster

    def _from_checkpoint(self, sent: list[dict[str, Any]], now: int) -> tuple[Simulation, int]:
        """The run to continue from, and how many of the sent changes it contains."""
        place = self._checkpoint
        header = None if place is None else checkpoint.header(place)
        if place is not None and header is not None:
            done = header["sent"]
            if (
                header == {**self._header(done, header["now"]), "source": header["source"]}
                and header["now"] <= now
            ):
                simulation = checkpoint.load(place) if sent[: len(done)] == done else None
                if simulation is not None:
                    return simulation, len(done)
        return Simulation(self._scenario, self._seed), 0

    def _header(self, sent: list[dict[str, Any]], now: int) -> checkpoint.Header:
        return {"scenario": self._scenario.digest, "seed": self._seed, "now": now, "sent": sent}

    @property
    def _checkpoint(self) -> Path | None:
        return None if self._path is None else checkpoint.place(self._path)

    @property
    def _in_use(self) -> str:
        return f"{self._path}: another command is using this simulation; wait for it"

    @property
    def _reset(self) -> str:
        assert self._path is not None
        return f"start over with: {state_file.reset_command(self._path, self._scenario, self._seed)}"

    def _read(self) -> dict[str, Any] | None:
        if self._path is None:
            return None
        state = state_file.own(self._path, self._scenario, self._seed)
        if state is None:
            return None
        if state["format"] != FORMAT:
            raise StateError(f"{self._path}: written by another version of ktriage; {self._reset}")
        if state["scenario"] != self._scenario.digest:
            raise StateError(f"{self._path}: the scenario has changed since; {self._reset}")
        return state

    def check_own(self) -> None:
        """Raises StateError where the state is borrowed: nothing may be changed then."""
        if self._borrowed:
            raise StateError(self._in_use)

    def sent(self, to: NetworkNode, frame: bytes) -> None:
        """Note a request that changes something."""
        if self._simulation is not None:
            now, data = self._simulation.now, b64encode(frame).decode()
            self._sent.append({"at": now, "role": to.role.value, "to": to.id, "frame": data})

    def save(self) -> None:
        """Write the state completely or not at all. Raises StateError."""
        if self._path is None or self._simulation is None or self._borrowed:
            return
        state = {
            "format": FORMAT,
            "name": self._scenario.name,
            "scenario": self._scenario.digest,
            "seed": self._seed,
            "now": self._simulation.now,
            "sent": self._sent,
            "history": self._simulation.world.history.events_digest(),
        }
        try:
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=self._path.parent, prefix=".simulation-", delete=False
            ) as file:
                json.dump(state, file)
                file.flush()
                os.fsync(file.fileno())
            Path(file.name).replace(self._path)
        except OSError as error:
            raise StateError(f"{self._path}: the state was not written: {error.strerror}") from None

    def reset(self) -> bool:
        """Delete the state and its checkpoint; False if there was none.

        Raises StateError, and deletes nothing, if the file is not of this scenario and seed.
        """
        if self._path is None or state_file.own(self._path, self._scenario, self._seed) is None:
            return False
        self.lock()
        try:
            found = state_file.own(self._path, self._scenario, self._seed) is not None
            if found:
                state_file.forget(self._path)
                if self._checkpoint is not None:
                    with suppress(OSError):
                        self._checkpoint.unlink(missing_ok=True)
            return found
        finally:
            self.unlock()
