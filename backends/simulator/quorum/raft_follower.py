"""The follower's side: finding the leader, fetching, truncating where the logs part, and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.simulator.events import QuorumTruncated
from backends.simulator.loop import MILLISECOND, Timer
from backends.simulator.network import controller
from backends.simulator.quorum.auto_join import AutoJoin
from backends.simulator.quorum.raft_messages import (
    FetchedMetadata,
    FetchedSnapshot,
    FetchMetadata,
    FetchSnapshot,
    QuorumLeader,
)
from recovery.membership.raft_votes import RaftLogEnd, RaftRole
from recovery.membership.voters import ReplicaKey

if TYPE_CHECKING:
    from backends.simulator.quorum.raft_replica import RaftReplica

BACKOFF = 50 * MILLISECOND
DISCOVERY_BACKOFF = 250 * MILLISECOND
SUCCESSION_BACKOFF = 20 * MILLISECOND


class RaftFollower:
    """Used while the replica follows, and to find out whom. Answers to earlier turns are dropped."""

    def __init__(self, replica: RaftReplica) -> None:
        self._replica = replica
        self._turn = 0
        self._deadline = 0
        self._timer: Timer | None = None
        self._retry: Timer | None = None
        self._joining = AutoJoin(replica)

    def stop(self) -> None:
        self._turn += 1
        for timer in (self._timer, self._retry):
            if timer is not None:
                timer.cancel()
        self._timer = self._retry = None

    def start(self, leader: QuorumLeader) -> None:
        """Fetch from ``leader`` until somebody else leads or it is silent for the fetch timeout."""
        self._reset()
        self._timer = self._replica.shared.loop.call_at(self._deadline, self._expired)
        self._joining.begin()
        self._fetch(leader, self._turn)

    def _reset(self) -> None:
        self._deadline = self._replica.shared.loop.now + self._replica.shared.config.controller_fetch_timeout

    def abandoned(self, successors: tuple[ReplicaKey, ...]) -> None:
        """The leader has resigned: the first of its successors stands at once, the others later and later."""
        place = next((at for at, key in enumerate(successors) if key == self._replica.key), len(successors))
        backoff = 0 if place == 0 else SUCCESSION_BACKOFF * 2**place
        self._deadline = min(self._deadline, self._replica.shared.loop.now + backoff)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._replica.shared.loop.call_at(self._deadline, self._expired)

    def _expired(self) -> None:
        replica = self._replica
        if self._deadline > replica.shared.loop.now:
            self._timer = replica.shared.loop.call_at(self._deadline, self._expired)
        elif replica.is_voter:
            replica.stand(RaftRole.PROSPECTIVE)
        else:
            replica.become_unattached(replica.epoch)

    # Without a leader.

    def discover(self) -> None:
        """Ask one of the bootstrap servers after the other, in random order, who leads."""
        replica = self._replica
        others = [number for number in replica.shared.bootstrap if number != replica.id]
        if not others:
            return
        target = controller(replica.shared.loop.random.choice(others))
        turn = self._turn

        def heard(reply: FetchedMetadata | None) -> None:
            if turn != self._turn or (reply is not None and replica.heard_of(reply.epoch, reply.leader)):
                return
            self._retry = replica.shared.loop.call_later(DISCOVERY_BACKOFF, self.discover)

        replica.endpoint.ask(target, self._request(), self._patience, heard)

    @property
    def _patience(self) -> int:
        """An answer that is lost is asked for again before the fetch timeout: one loss is no election."""
        config = self._replica.shared.config
        return config.metadata_idle_interval + config.controller_fetch_timeout // 4

    def _request(self) -> FetchMetadata:
        replica = self._replica
        return FetchMetadata(replica.shared.cluster_id, replica.key, replica.epoch, replica.log.log_end)

    # With a leader.

    def _fetch(self, leader: QuorumLeader, turn: int) -> None:
        replica = self._replica
        if turn != self._turn:
            return
        target = replica.shared.resolve(leader.endpoints)
        if target is None:
            return  # the fetch timeout ends it
        replica.endpoint.ask(
            target, self._request(), self._patience, lambda reply: self._heard(leader, turn, reply)
        )

    def _again(self, leader: QuorumLeader, turn: int) -> None:
        self._retry = self._replica.shared.loop.call_later(BACKOFF, self._fetch, leader, turn)

    def _heard(self, leader: QuorumLeader, turn: int, reply: FetchedMetadata | None) -> None:
        replica = self._replica
        if turn != self._turn:
            return
        if reply is None:
            self._fetch(leader, turn)
            return
        if replica.heard_of(reply.epoch, reply.leader):
            return
        if reply.error is not None or reply.epoch != replica.epoch:
            self._again(leader, turn)
            return
        replica.fetched = True
        self._reset()
        if reply.snapshot is not None:
            self._fetch_snapshot(leader, turn, reply.snapshot)
            return
        if reply.diverging is not None:
            self._truncate(reply.diverging)
        elif reply.entries and not replica.write(reply.entries):
            return
        self._learn(reply.high_watermark)
        self._joining.look(leader)
        self._fetch(leader, turn)

    def _learn(self, high_watermark: int | None) -> None:
        replica = self._replica
        if high_watermark is not None:
            known = min(high_watermark, replica.log.end)
            replica.high_watermark = max(known, replica.high_watermark or 0)
            replica.log.compact(replica.high_watermark, replica.shared.config.metadata_records_kept)

    def _truncate(self, diverging: RaftLogEnd) -> None:
        """To the end of the newest epoch that both logs have (KIP-595, "Log reconciliation")."""
        log = self._replica.log
        own = log.end_of_epoch(diverging.epoch)
        to = min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset
        self._replica.note(f"truncates the metadata log from {log.end} to {to}")
        self._replica.shared.emit(QuorumTruncated(self._replica.id, to, log.epoch_of(to)))
        log.truncate(to)

    def _fetch_snapshot(self, leader: QuorumLeader, turn: int, snapshot: RaftLogEnd) -> None:
        replica = self._replica
        target = replica.shared.resolve(leader.endpoints)
        if target is None:
            return

        def heard(reply: FetchedSnapshot | None) -> None:
            if turn != self._turn or (reply is not None and replica.heard_of(reply.epoch, reply.leader)):
                return
            if reply is None or reply.snapshot is None:
                self._again(leader, turn)
                return
            self._reset()
            if replica.disk.broken:
                replica.fail()
                return
            replica.note(f"loads the snapshot at {reply.snapshot.end}")
            replica.log.install(reply.snapshot)
            replica.high_watermark = max(reply.snapshot.end, replica.high_watermark or 0)
            self._fetch(leader, turn)

        body = FetchSnapshot(replica.shared.cluster_id, replica.key, replica.epoch, snapshot)
        replica.endpoint.ask(target, body, self._patience, heard)
