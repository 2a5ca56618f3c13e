"""``ktriage quorum replace`` on a real cluster, with an operator that carries out the steps on the hosts."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from backends.base.errors import BackendError
from backends.base.membership import ChangeAnswer, Membership
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.quorum_backend import QuorumOnly
from recovery.membership.preflight import LivenessLimits, VoterSetStrength, strength
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import MemberRole, MemberState, health
from recovery.membership.replacement_state import STOPPED_MS
from testbed.kafka import KafkaCluster, wait_until
from tests.command_server import Ended
from tests.contract.backend_requests import MemoryRecorder
from tests.unit.cli.command_process import command_line, environment

T = TypeVar("T")
_STEP = re.compile(r"^(\d+)\. (.*)$")
_NODE = re.compile(r"controller (\d+)")
SECONDS = 120.0


class HostOperator:
    """Carries out each step once. ``servers`` are the new controller.quorum.bootstrap.servers; empty: no change."""

    def __init__(self, cluster: KafkaCluster, servers: Sequence[int] = ()) -> None:
        self._cluster = cluster
        self._servers = servers
        self.did: list[str] = []

    def __call__(self, title: str) -> None:
        found = _NODE.search(title)
        if title.startswith("stop controller") and found:
            self._cluster.node(int(found[1])).stop()
        elif "start controller" in title and found:
            self._cluster.node(int(found[1])).kill()
            self._cluster.format_again(int(found[1]))
            self._cluster.node(int(found[1])).start()
        elif title.startswith("change controller.quorum") and self._servers and title not in self.did:
            self._change_servers()
        self.did.append(title)

    def _change_servers(self) -> None:
        """Changes the setting on every host and restarts them one by one, as the step says."""
        self._cluster.set_bootstrap_controllers(self._servers)
        for node in self._servers:
            self._cluster.node(node).restart()
            wait_listening(self._cluster, node)
        for broker in self._cluster.brokers.values():
            broker.restart()


class QuorumWatcher:
    """Reads the quorum through the controllers; cheap enough for repeated calls."""

    def __init__(self, cluster: KafkaCluster) -> None:
        seeds = ",".join(f"127.0.0.1:{node.port}" for node in cluster.controllers.values())
        self._settings = ClientSettings(parse_addresses(seeds))

    def quorum(self) -> Quorum | None:
        """None while there is no leader."""
        try:
            return asyncio.run(self._ask(lambda membership: membership.describe()))
        except BackendError:
            return None

    def remove(self, node: int) -> ChangeAnswer:
        """RemoveRaftVoter for that node, once, without the checks of the command."""
        key = self.until(lambda q: next(key for key in q.voters.keys if key.id == node), f"voter {node}")
        return asyncio.run(self._ask(lambda membership: membership.remove_voter(key, MemoryRecorder())))

    async def _ask(self, ask: Callable[[Membership], Awaitable[T]]) -> T:
        only = QuorumOnly(self._settings)
        try:
            await only.membership.open()
            return await ask(only.membership)
        finally:
            await only.close()

    def until(self, condition: Callable[[Quorum], T | None], what: str, timeout: float = 60.0) -> T:
        """The first true value of ``condition`` on a quorum with a leader."""

        def check() -> T | None:
            quorum = self.quorum()
            return None if quorum is None else condition(quorum)

        return wait_until(check, what, timeout)

    def voters(self) -> dict[int, str]:
        """Node to directory id, once the quorum has a leader."""
        return self.until(lambda q: {key.id: key.directory_id for key in q.voters.keys}, "a leader")

    def wait_voters(self, wanted: set[int]) -> dict[int, str]:
        """Waits until exactly these are the voters."""
        self.until(lambda q: {key.id for key in q.voters.keys} == wanted, f"the voters {sorted(wanted)}")
        return self.voters()

    def leader(self) -> int:
        return self.until(lambda q: q.leader.id, "a leader")

    def all_up(self) -> VoterSetStrength:
        """The strength of the voter set, once every voter is up."""

        def check(quorum: Quorum) -> VoterSetStrength | None:
            found = strength(quorum, quorum.voters, LivenessLimits())
            return None if found.down else found

        return self.until(check, "every voter to be up")

    def joined(self, node: int) -> str:
        """The directory id with which the node fetches as an observer, once it has caught up."""

        def check(quorum: Quorum) -> str | None:
            found = health(quorum, LivenessLimits())
            mine = [m for m in found.members if m.key.id == node and m.role is not MemberRole.VOTER]
            return next((m.key.directory_id for m in mine if m.state is MemberState.CAUGHT_UP), None)

        return self.until(check, f"node {node} to fetch")

    def stopped(self, node: int) -> None:
        """Waits until nobody who looks every few seconds can have missed that the node does not fetch.

        An operator changes a disk in minutes. Where the new process fetches a moment after the old one counts as
        stopped, the command cannot tell that the disk was changed, and goes on waiting.
        """

        def check(quorum: Quorum) -> bool:
            newest = max((r.last_fetch_ms for r in quorum.progress if r.key.id == node), default=-1)
            return newest <= 0 or quorum.now_ms - newest > 3 * STOPPED_MS

        self.until(check, f"node {node} to be stopped for a while")

    def ghost(self, node: int) -> None:
        """Waits until the node is listed as a ghost, which no longer fetches."""

        def check(quorum: Quorum) -> bool:
            mine = [m for m in health(quorum, LivenessLimits()).members if m.key.id == node]
            return any(m.state is MemberState.GHOST for m in mine)

        self.until(check, f"node {node} to be a ghost")


class ReplaceCommand:
    """The command in its own process; ``hosts`` gets each step as it is printed.

    The command is killed before the request ``die``. ``resume`` prints no plan before its steps.
    """

    def __init__(self, home: Path, words: Sequence[str], hosts: Callable[[str], None], die: str = "") -> None:
        self._begun = words[0] == "resume"
        line = command_line("ktriage", *words)
        if die:
            line = [sys.executable, "-m", "tests.live.killed_command", die, *words]
        self._hosts = hosts
        self.lines: list[str] = []
        self._errors: list[str] = []
        self._process = subprocess.Popen(
            line, env=environment(home), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def ended(self, timeout: float = SECONDS) -> Ended:
        """Waits for the end; a process that hangs is killed, and its output is in the failed assertion."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(10)
        return Ended(self._process.returncode, "\n".join(self.lines), "\n".join(self._errors))

    def stop(self) -> None:
        """SIGTERM, as a service manager does."""
        self._process.send_signal(signal.SIGTERM)

    def _read(self) -> None:
        """Passes on the steps; the plan, up to its digest, is printed before them."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())
            step = _STEP.match(line)
            if line.startswith("digest "):
                self._begun = True
            elif self._begun and step:
                self._hosts(step[2].strip())

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(line.rstrip() for line in self._process.stderr)


def wait_listening(cluster: KafkaCluster, node: int) -> None:
    """Waits until the node accepts connections."""

    def listening() -> bool:
        try:
            socket.create_connection(("127.0.0.1", cluster.node(node).port), 1.0).close()
        except OSError:
            return False
        return True

    wait_until(listening, f"node {node} to listen")
