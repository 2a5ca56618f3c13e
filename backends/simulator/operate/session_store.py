"""Persists a run as an event log and replays it.

The file holds the scenario, the seed, every change that the operator sent with its time, and the current time.
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
from pathlib import Path
from typing import Any

from backends.base.transactions import Marker
from backends.garbage_collection import without_collection
from backends.simulator.messages import CreateTopic, ElectLeaders, Reassign, UpdateFeature
from backends.simulator.network import NetworkNode, NetworkRole
from backends.simulator.operate import checkpoint, state_file
from backends.simulator.operate.state_file import FORMAT, StateError
from backends.simulator.operator_messages import AppendBatch, CommitGroupOffsets, WriteTxnMarkers
from backends.simulator.quorum.raft_messages import AddRaftVoter
from backends.simulator.rpc import RpcEndpoint
from backends.simulator.scenario.build import Scenario
from backends.simulator.simulation import Simulation
from recovery.controller.transition_targets import ElectionKind
from recovery.groups.group_values import CommittedOffset
from recovery.membership.voter_changes import RemoveRaftVoter
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from recovery.model import TopicPartition

TIMEOUT = 3_000_000
WORTH_KEEPING = 20_000
"""A replay of at least so many steps (about a second) ends with a checkpoint."""
LARGE = 20_000
"""Partitions."""

Sent = (
    ElectLeaders
    | Reassign
    | AddRaftVoter
    | RemoveRaftVoter
    | UpdateFeature
    | AppendBatch
    | CreateTopic
    | CommitGroupOffsets
    | WriteTxnMarkers
)
"""The requests of an operator that change something."""

_ClientRequest = AppendBatch | CreateTopic | CommitGroupOffsets | WriteTxnMarkers


Shares = Callable[[], None]


class SessionStore:
    """The state file of one scenario and seed at ``path``; None saves nothing.

    With ``shares`` a saved state that another process holds is read as it was saved: ``shares`` is called, nothing
    is written, and a change raises StateError. Open it with :meth:`lock`, then :meth:`simulation`. Call ``save``
    after everything that moves time.
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

    def lock(self) -> None:
        """Raises StateError while another process holds the lock and the state is not shared, or if the file
        cannot be written.

        Creates no lock beside a file that is not a state of this scenario and seed.
        """
        if self._path is None or self._lock is not None:
            return
        state_file.own(self._path, self._scenario, self._seed)
        path = state_file.sibling_path(self._path, "lock")
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

    async def simulation(self) -> Simulation:
        """The simulation as the last command left it, or as the operator meets it first. Raises StateError."""
        state = self._read()
        with without_collection():
            if state is None:
                simulation = await self._replayed([], self._scenario.operator_at)
            else:
                try:
                    self._sent = list(state["sent"])
                    simulation = await self._replayed(self._sent, state["now"])
                    history = state["history"]
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    message = f"{self._path}: not a simulation's state ({error}); {self._reset}"
                    raise StateError(message) from None
                if history != simulation.world.history.events_digest():
                    raise StateError(
                        f"{self._path}: a replay gives another history with this version; {self._reset}"
                    )
        if len(simulation.world.image.partitions) >= LARGE:
            gc.freeze()  # a large run keeps its objects; without this every collection would visit them
        self._simulation = simulation
        return simulation

    async def _replayed(self, sent: list[dict[str, Any]], now: int) -> Simulation:
        """The run at ``now``, continued from its checkpoint if there is one. A long replay ends with a new
        checkpoint.
        """
        simulation, done = self._from_checkpoint(sent, now)
        before = simulation.world.loop.steps
        endpoint: RpcEndpoint = simulation.world.operator
        for row in sent[done:]:
            await simulation.come_to(row["at"])
            endpoint.ask(NetworkNode(NetworkRole(row["role"]), row["to"]), _decoded(row), TIMEOUT, _unheard)
        await simulation.come_to(now)
        own = self._path is not None and not self._borrowed
        if own and simulation.world.loop.steps - before >= WORTH_KEEPING:
            checkpoint.write(self._checkpoint, self._header(sent, now), simulation)
        return simulation

    def _from_checkpoint(self, sent: list[dict[str, Any]], now: int) -> tuple[Simulation, int]:
        """The run to continue from, and how many of the sent changes it contains."""
        header = None if self._path is None else checkpoint.header(self._checkpoint)
        if header is not None:
            done = header["sent"]
            if (
                header == {**self._header(done, header["now"]), "source": header["source"]}
                and header["now"] <= now
            ):
                simulation = checkpoint.load(self._checkpoint) if sent[: len(done)] == done else None
                if simulation is not None:
                    return simulation, len(done)
        return Simulation(self._scenario, self._seed), 0

    def _header(self, sent: list[dict[str, Any]], now: int) -> checkpoint.Header:
        return {"scenario": self._scenario.digest, "seed": self._seed, "now": now, "sent": sent}

    @property
    def _checkpoint(self) -> Path:
        assert self._path is not None
        return state_file.sibling_path(self._path, "checkpoint")

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

    def sent(self, to: NetworkNode, body: Sent) -> None:
        """Note a change that the operator is about to send. Raises StateError if the state is borrowed."""
        if self._borrowed:
            raise StateError(self._in_use)
        if self._simulation is None:
            return
        self._sent.append({"at": self._simulation.now, "role": to.role.value, "to": to.id, **_encoded(body)})

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
            return found
        finally:
            self.unlock()


def _encoded(body: Sent) -> dict[str, Any]:
    if isinstance(body, ElectLeaders):
        rows = body.partitions
        named = None if rows is None else [[tp.topic, tp.partition, leader] for tp, leader in rows]
        return {"elect": body.kind.value, "partitions": named}
    if isinstance(body, AddRaftVoter):
        voter = body.voter
        listeners = [list(endpoint) for endpoint in voter.endpoints]
        key, versions = list(voter.key), list(voter.kraft_versions)
        return {"add": key, "endpoints": listeners, "versions": versions, "timeout": body.timeout} | _of(body)
    if isinstance(body, RemoveRaftVoter):
        return {"remove": list(body.key)} | _of(body)
    if isinstance(body, _ClientRequest):
        return _encoded_client_request(body)
    if isinstance(body, UpdateFeature):
        return {"feature": body.feature, "level": body.level}
    targets = [[tp.topic, tp.partition, None if r is None else list(r)] for tp, r in body.targets]
    return {"reassign": targets, "allow": body.allow_replication_factor_change}


def _encoded_client_request(body: _ClientRequest) -> dict[str, Any]:
    if isinstance(body, WriteTxnMarkers):
        return {"markers": [[*tp, *marker] for tp, *marker in body.markers]}
    if isinstance(body, CommitGroupOffsets):
        return {"group": body.group, "offsets": [[*tp, *committed] for tp, committed in body.offsets]}
    if isinstance(body, AppendBatch):
        return {"append": list(body.tp), "data": b64encode(body.data).decode()}
    return {"create": body.topic, "assignments": [list(row) for row in body.assignments], "min": body.min_isr}


def _decoded_client_request(row: dict[str, Any]) -> _ClientRequest:
    if "markers" in row:
        markers = [Marker(TopicPartition(t, p), *rest) for t, p, *rest in row["markers"]]
        return WriteTxnMarkers(tuple(markers))
    if "group" in row:
        offsets = [(TopicPartition(t, p), CommittedOffset(*rest)) for t, p, *rest in row["offsets"]]
        return CommitGroupOffsets(row["group"], tuple(offsets))
    if "append" in row:
        topic, partition = row["append"]
        return AppendBatch(TopicPartition(topic, partition), b64decode(row["data"]))
    return CreateTopic(row["create"], tuple(map(tuple, row["assignments"])), row["min"])


def _of(body: AddRaftVoter | RemoveRaftVoter) -> dict[str, Any]:
    return {"cluster": body.cluster_id}


def _decoded(row: dict[str, Any]) -> Sent:
    if "elect" in row:
        rows = row["partitions"]
        named = None if rows is None else tuple((TopicPartition(t, p), leader) for t, p, leader in rows)
        return ElectLeaders(ElectionKind(row["elect"]), named)
    if "add" in row:
        lowest, highest = row["versions"]
        listeners = tuple(VoterEndpoint(*endpoint) for endpoint in row["endpoints"])
        voter = Voter(ReplicaKey(*row["add"]), listeners, (lowest, highest))
        return AddRaftVoter(voter, row["cluster"], row["timeout"])
    if "remove" in row:
        return RemoveRaftVoter(ReplicaKey(*row["remove"]), row["cluster"])
    if row.keys() & {"append", "create", "group", "markers"}:
        return _decoded_client_request(row)
    if "feature" in row:
        return UpdateFeature(row["feature"], row["level"])
    targets = tuple((TopicPartition(t, p), None if r is None else tuple(r)) for t, p, r in row["reassign"])
    return Reassign(targets, row["allow"])


def _unheard(_reply: Any) -> None:
    """Replay: the answer was handled in the original run."""
