"""Old voters that return with their disks after a rebuild, or while it is carried out, described as data."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from backends.metadata_log.directory import DIRECTORY
from backends.metadata_log.quorum_copy import stored_election
from recovery.wording.quantity_text import both
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.command_server import Ended
from tests.live.lost_quorum import (
    ACCEPTED,
    ORDERS,
    YES,
    LostQuorum,
    RebuiltQuorum,
    begun_rebuild,
    holds_plan,
    spec,
)
from tests.live.quorum_replacement import QuorumWatcher, wait_listening

ADDED = 103
"""The voter that was added last: the early disks know nothing of it."""
NEW = 104
"""The new controller, where no old one's disk is left."""
_STOP = "is that of a rebuilt quorum, whose old voters must not run: stop controllers"
QUIET = {"metadata.max.idle.interval.ms": "10000"}
"""Few records without a change: a log that is longer stays so for the length of the test."""


class Return(NamedTuple):
    """Which ``nodes`` start again, and with which disk: ``early``, of before 103 was a voter, so that log and voter
    set are older than the chosen copy's; or ``late``: where 100 is left, their log is longer than the rebuilt one.
    ``names``: whom their controller.quorum.bootstrap.servers names.
    """

    nodes: tuple[int, ...]
    disk: Literal["early", "late"]
    names: Literal["everybody", "each other"] = "everybody"

    def __str__(self) -> str:
        who = both(self.nodes)
        return f"{who}, {self.disk} disk{'' if len(self.nodes) == 1 else 's'}, naming {self.names}"

    @property
    def is_majority(self) -> bool:
        """Of the voter set that their disks hold."""
        return len(self.nodes) >= (2 if self.disk == "early" else 3)


RETURNS = (
    Return((101,), "early"),
    Return((101,), "late"),
    Return((101, 102), "early"),
    Return((101, 102), "early", "each other"),
    Return((101, 102, ADDED), "late"),
    Return((101, 102, ADDED), "late", "each other"),
)


class Seen(NamedTuple):
    """What one return came to. ``quorums``: how many ``quorum status`` says; ``follow``: the nodes that follow the
    rebuilt one; ``ended``: those that ended themselves. The others wait for a leader, or have one of their own.
    """

    quorums: int
    follow: tuple[int, ...]
    ended: tuple[int, ...]


class ReturningVoters:
    """A cluster whose voters 101, 102 and 103 are said to be gone. ``in_place``: 100 is left, and has fewer changes
    than they; else a new controller is filled from a broker's copy, at an address that no old voter knows.
    """

    def __init__(self, cluster: KafkaCluster, home: Path, *, in_place: bool) -> None:
        self.cluster = cluster
        self._saved = home / "saved"
        if in_place:
            incident = LostQuorum("", cluster.spec, "follower", 100, accepts=ACCEPTED, stops=True)
        else:
            incident = LostQuorum("", cluster.spec, "broker", 1, new_voter=NEW)
        self.quorum = RebuiltQuorum(incident, cluster, home)
        self._servers = ",".join(cluster.controller_address(node) for node in cluster.controllers)
        self.in_place = in_place

    def prepare(self) -> None:
        """The disks of before and of the end are kept; nothing runs but the brokers."""
        cluster, watched = self.cluster, QuorumWatcher(self.cluster)
        self.quorum.prepare()
        for node in (101, 102):
            watched.all_up()
            cluster.node(node).kill()
            self._save(node, "early")
            cluster.node(node).start()
        watched.all_up()
        cluster.format_again(ADDED)
        cluster.node(ADDED).start()
        wait_listening(cluster, ADDED)
        watched.joined(ADDED)
        added = self.quorum.console("quorum", "add", str(ADDED), *YES)
        assert added.status == 0, added
        watched.wait_voters({100, 101, 102, ADDED})
        watched.all_up()
        if self.in_place:
            self.quorum.leave_behind(100)
            self.quorum.change(400)
        for node in (100, 101, 102, ADDED):
            cluster.node(node).kill()
        for node in (101, 102, ADDED):
            self._save(node, "late")
            cluster.node(node).wipe_log_dir()
        if not self.in_place:
            cluster.node(100).wipe_log_dir()
            cluster.format_again(NEW)
        self.quorum.voter = 100 if self.in_place else NEW

    def rebuild(self) -> None:
        """The plan, and its carrying out; nothing is started."""
        self.quorum.make_plan()
        shutil.copytree(self.quorum.target, self._saved / "planned")
        self.quorum.apply()

    def come_back(self, back: Return) -> None:
        """They start, with that disk."""
        for node in back.nodes:
            self._put(node, back.disk)
        each_other = ",".join(self.cluster.controller_address(node) for node in back.nodes)
        for node in back.nodes:
            servers = self._servers if back.names == "everybody" else each_other
            self.cluster.node(node).change_properties({"controller.quorum.bootstrap.servers": servers})
            self.cluster.node(node).start()
        for node in back.nodes:
            wait_listening(self.cluster, node)

    def wipe(self, back: Return) -> None:
        """They are stopped, and their disks wiped, as the plan says."""
        for node in back.nodes:
            self.cluster.node(node).kill()
            self.cluster.node(node).wipe_log_dir()

    def status(self) -> Ended:
        """``quorum status`` with the address of every controller."""
        words = ("--bootstrap-controller", self._servers)
        return self.quorum.console.without_cluster("quorum", "status", *words)

    def tried_before_the_start(self, back: Return) -> Seen:
        """They return while the new voter is still down, as they may during the apply; then it starts.

        It is stopped again, and nothing of it stays.
        """
        rebuilt = self._saved / "rebuilt"
        if not rebuilt.exists():
            shutil.copytree(self.quorum.target, rebuilt)
        self.come_back(back)
        if back.is_majority:
            wait_until(lambda: self._led_by(back.nodes), f"one of {back.nodes} to lead", 90)
        self.cluster.node(self.quorum.voter).start()
        epoch = self.wait_led()
        seen = self._settled(back, two=back.is_majority and not self.in_place)
        assert self.wait_led() == epoch
        self.cluster.node(self.quorum.voter).kill()
        self.wipe(back)
        shutil.rmtree(self.quorum.target)
        shutil.copytree(rebuilt, self.quorum.target)
        return seen

    def tried_during_the_write(self, back: Return) -> Seen:
        """They return while the plan is being written: the process is halted in between until they lead. The plan
        is written whole, and they are told; then the new voter starts.
        """
        rebuilt = self._saved / "rebuilt"
        for _ in range(20):
            self._unwritten()
            process = begun_rebuild(self.quorum, self._saved.parent)
            process.send_signal(signal.SIGSTOP)
            halted = process.poll() is None and not holds_plan(self.quorum)
            if halted:
                self.come_back(back)
                wait_until(lambda: self._led_by(back.nodes), f"one of {back.nodes} to lead", 90)
            process.send_signal(signal.SIGCONT)
            said, told = process.communicate(timeout=60)
            if halted:
                break
        else:
            raise AssertionError("the rebuild was never halted before its log was there")
        assert process.returncode == 1, (said, told)
        for node in back.nodes:
            assert f"VOTER {node} ANSWERS NOW" in told.decode(), told
        self.quorum.check_dump()
        self.cluster.node(self.quorum.voter).start()
        epoch = self.wait_led()
        seen = self._settled(back, two=back.is_majority and not self.in_place)
        assert self.wait_led() == epoch
        self.cluster.node(self.quorum.voter).kill()
        self.wipe(back)
        shutil.rmtree(self.quorum.target)
        shutil.copytree(rebuilt, self.quorum.target)
        return seen

    def _unwritten(self) -> None:
        """The directory is as it was planned for, and there is no back-up."""
        if not (self._saved / "rebuilt").exists():
            shutil.copytree(self.quorum.target, self._saved / "rebuilt")
        shutil.rmtree(self.quorum.target)
        shutil.copytree(self._saved / "planned", self.quorum.target)
        shutil.rmtree(self.quorum.plan()["backup"], ignore_errors=True)

    def refuse_second_rebuild(self) -> None:
        """The rebuilt quorum is lost too: whoever was replaced before must be named as well."""
        for node in (self.quorum.voter, *self.cluster.brokers):
            self.cluster.node(node).kill()
        self.cluster.node(self.quorum.voter).wipe_log_dir()
        self.cluster.format_again(101)
        brokers = [str(node.log_dirs[0]) for node in self.cluster.brokers.values()]
        words = ["--from", brokers[0], "--into", str(self.cluster.node(101).log_dirs[0])]
        words += ["--voter", f"101@{self.cluster.controller_address(101)}", "--dead", str(self.quorum.voter)]
        words += [word for path in brokers for word in ("--data", path)]
        words += ["--plan-out", str(self._saved / "second.json")]
        refused = self.quorum.rebuild(*words)
        assert refused.status == 1, refused
        assert "voters 100, 102, 103, which an earlier rebuild replaced, are not named" in refused.err, (
            refused
        )
        told = self.quorum.console.without_cluster("quorum", "evidence", *brokers)
        named = " ".join(f"--dead {node}" for node in (100, 101, 102, ADDED, NEW))
        assert named in told.err, told
        planned = self.quorum.rebuild(*words, *(w for n in (100, 102, ADDED) for w in ("--dead", str(n))))
        assert planned.status == 0, planned

    def know_old_voters_alone(self) -> None:
        """The brokers' settings name no other controller, so that nothing tells them of the new one."""
        old = ",".join(self.cluster.controller_address(node) for node in (100, 101, 102, ADDED))
        for broker in self.cluster.brokers.values():
            broker.stop()
            broker.change_properties({"controller.quorum.bootstrap.servers": old})
            broker.start()
        self.cluster.metadata.wait_live(self.cluster.brokers, 90)

    def followed_by_brokers(self, back: Return, topic: str) -> None:
        """They lead, and brokers follow: a topic is made, leaders change, and records are written; meanwhile the
        new voter leads a quorum of its own.
        """
        metadata, one, other = self.cluster.metadata, *sorted(self.cluster.brokers)
        self.come_back(back)
        metadata.wait_live(self.cluster.brokers, 90)
        self.quorum.make_topic(topic)
        for down, leads in ((one, other), (other, one)):
            metadata.wait_caught_up()
            self.cluster.node(down).kill()
            for partition in (0, 1):
                metadata.wait_leader(ORDERS, partition, leads)
            self.quorum.produce(ORDERS, f"led-by-{leads}", 20)
            self.cluster.node(down).start()
            metadata.wait_live(self.cluster.brokers, 90)
            for partition in (0, 1):
                metadata.wait_isr(ORDERS, partition, {one, other})
        self.cluster.node(self.quorum.voter).start()
        self.wait_led()

    def rebuild_again(self, back: Return) -> None:
        """From the new voter's own log, with what brokers' disks hold of the other quorum."""
        self.wipe(back)
        for node in (*self.cluster.brokers, self.quorum.voter):
            self.cluster.node(node).kill()
        brokers = self.cluster.brokers.values()
        plan = self._saved / "second.json"
        words = ["--from", str(self.cluster.node(self.quorum.voter).log_dirs[0])]
        words += ["--voter", f"{self.quorum.voter}@{self.cluster.controller_address(self.quorum.voter)}"]
        words += [word for node in (100, 101, 102, ADDED) for word in ("--dead", str(node))]
        words += [word for broker in brokers for word in ("--data", str(broker.log_dirs[0]))]
        planned = self.quorum.rebuild(*words, *ACCEPTED, "--plan-out", str(plan))
        assert planned.status == 0, planned
        applied = self.quorum.rebuild(str(plan), *YES)
        assert applied.status == 0 and "Start it again" in applied.out, applied
        self.cluster.node(self.quorum.voter).start()
        for broker in brokers:
            servers = self.cluster.controller_address(self.quorum.voter)
            broker.change_properties({"controller.quorum.bootstrap.servers": servers})
            broker.start()
        self.quorum.wait_registered(tuple(self.cluster.brokers))
        for partition in (0, 1):
            self.cluster.metadata.wait_isr(ORDERS, partition, set(self.cluster.brokers), 90)

    def tried_afterwards(self, back: Return) -> Seen:
        """They return to a cluster that goes on; it must not notice."""
        epoch = self.wait_led()
        self.come_back(back)
        two = back.is_majority and not self.in_place
        # Who names the new voter has mostly found it before anybody asks for votes. Nothing makes that certain.
        seen = self._settled(back, two=two if back.names == "each other" or not two else None)
        told = self.quorum.described_quorum()
        assert (int(told["LeaderId"]), int(told["LeaderEpoch"])) == (self.quorum.voter, epoch), told
        assert not seen.ended
        self.quorum.check_goes_on()
        self.wipe(back)
        return seen

    def _settled(self, back: Return, *, two: bool | None) -> Seen:
        """Once ``quorum status`` says what is expected (``two`` None: either), and each node that returned has a
        leader or ended. One that cannot lead, and that nobody asks, may look for a leader for minutes.
        """

        def check() -> Seen | None:
            said = self.status()
            running = [node for node in back.nodes if self.cluster.node(node).is_running]
            follow = tuple(node for node in running if self._follows(node))
            ended = tuple(node for node in back.nodes if node not in running)
            seen = Seen(_quorums(said), follow, ended)
            if seen.quorums == 2:
                return seen if two is not False and said.status == 1 and _STOP in said.out else None
            found_all = len(follow) + len(ended) == len(back.nodes)
            may_wait = not back.is_majority and not self.in_place
            return seen if not two and seen.quorums == 1 and (found_all or may_wait) else None

        wanted = {True: "two quorums", False: "one quorum", None: "one quorum or two"}[two]
        return wait_until(check, f"{wanted} after {back}", 120, interval=1.0, describe_state=self.status)

    def _follows(self, node: int) -> bool:
        election = stored_election(self.cluster.node(node).log_dirs[0] / DIRECTORY)
        return (
            self.cluster.node(node).is_running
            and election is not None
            and election.leader == self.quorum.voter
            and election.epoch > self.quorum.plan()["epoch"]
        )

    def _led_by(self, nodes: tuple[int, ...]) -> bool:
        elections = (stored_election(self.cluster.node(node).log_dirs[0] / DIRECTORY) for node in nodes)
        return any(found is not None and found.leader in nodes for found in elections)

    def wait_led(self) -> int:
        """The epoch in which the rebuilt quorum is led, as its only voter says."""

        def led() -> int | None:
            election = stored_election(self.quorum.target / DIRECTORY)
            if election is None or election.leader != self.quorum.voter:
                return None
            return election.epoch if election.epoch > self.quorum.plan()["epoch"] else None

        return wait_until(led, f"{self.quorum.voter} to lead", 90)

    def _save(self, node: int, disk: str) -> None:
        shutil.copytree(self.cluster.node(node).log_dirs[0], self._saved / f"{node}-{disk}")

    def _put(self, node: int, disk: str) -> None:
        log_dir = self.cluster.node(node).log_dirs[0]
        shutil.rmtree(log_dir)
        shutil.copytree(self._saved / f"{node}-{disk}", log_dir)


def _quorums(said: Ended) -> int:
    """As many as ``quorum status`` says."""
    found = re.search(r"^(\d+) QUORUMS", said.out, re.MULTILINE)
    return int(found[1]) if found else 1 if "quorum led by" in said.out else 0


def returning_cluster(version: str) -> ClusterSpec:
    """A voter to add, and a new controller."""
    return replace(spec(version, settings=QUIET), spare_controllers=2)


def all_returns(
    voters: ReturningVoters, returns: tuple[Return, ...] = RETURNS, *, during: bool = True
) -> Iterator[tuple[str, Return, Seen]]:
    """Each of them ``during`` the write, before the new voter starts, and afterwards."""
    voters.prepare()
    voters.rebuild()
    for back in returns:
        if during and back.is_majority:
            yield "during the write", back, voters.tried_during_the_write(back)
        yield "before its start", back, voters.tried_before_the_start(back)
    voters.quorum.start()
    voters.quorum.check()
    for back in returns:
        yield "afterwards", back, voters.tried_afterwards(back)
