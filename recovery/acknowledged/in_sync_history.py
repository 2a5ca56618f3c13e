"""Which replicas were in the ISR at what time, and so held every acknowledged record, by the metadata log.

A leader acknowledges a record (acks=all) when every member of its ISR has it and the ISR has min ISR members. It
knows only ISRs that the controller wrote, and it learns a new min ISR late: an ISR counts as able to acknowledge if
it reached the lowest min ISR of the leader's epoch (:mod:`recovery.acknowledged.min_isr_over_time`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from recovery.acknowledged.broker_restarts import BrokerRestart, LastStop
from recovery.acknowledged.min_isr_over_time import LowestMinIsr, MinIsrOverTime
from recovery.controller.registration import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    LeaderRecoveryState,
    added_by_leader,
)
from recovery.metadata_log.history import PartitionInterval

_at, _offset = attrgetter("at"), attrgetter("offset")
_leader_epoch = attrgetter("registration.leader_epoch")
_UNPLACED = frozenset((None, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY, LOST_DIRECTORY))


class Whole(NamedTuple):
    """A replica held every acknowledged record: it was in the ISR last at interval ``last``, and nothing was
    acknowledged without it since.

    ``restarts`` are its restarts since it was last known to hold them: each may have lost unflushed records.
    """

    last: int
    restarts: tuple[BrokerRestart, ...]
    proved_at: int


class DoubtfulElection(NamedTuple):
    """A leader that may have lacked acknowledged records: elected with ``epoch`` at interval ``at``.

    ``restarts`` where it held them all unless one of these lost unflushed records; empty: nothing shows that it
    did.
    """

    at: int
    leader: int
    epoch: int
    since_ms: int
    restarts: tuple[BrokerRestart, ...]

    @property
    def unclean(self) -> bool:
        return not self.restarts


class LedAlone(NamedTuple):
    """A leader had the ISR ``isr`` from ``since_ms`` to ``until_ms``. ``acks_all``: it reached the lowest min ISR
    that may have been in force, so that records were acknowledged with acks=all too.
    """

    isr: tuple[int, ...]
    since_ms: int
    until_ms: int
    acks_all: bool = False


class InSyncHistory:
    """The states of one partition, the oldest first.

    ``from_creation``: the first is its creation; otherwise it is what a snapshot holds, or a rebuild of the quorum
    wrote (``begins``), and nothing is known of earlier elections. ``shut_down``: brokers that are in a controlled
    shutdown, or ended in one. ``once_compacted``: a topic of this name had a cleanup.policy with compact at any
    time of the log. ``ends``: why the metadata log is no evidence behind this history, "" where it is evidence to
    its end.

    What happened before all present replicas were in the ISR of one leader does not count: see :attr:`start`.
    """

    def __init__(
        self,
        intervals: tuple[PartitionInterval, ...],
        min_isr: MinIsrOverTime,
        restarts: Mapping[int, tuple[BrokerRestart, ...]],
        *,
        from_creation: bool,
        shut_down: frozenset[int] = frozenset(),
    ) -> None:
        self.intervals = intervals
        self.shut_down = shut_down
        self.once_compacted = False
        self.ends = ""
        self.begins = "a snapshot"
        self._min_isr = min_isr
        self._restarts = restarts
        self._files_used: set[int] = set()
        self._snapshot_used = False
        self.start = self._all_in_sync(from_creation=from_creation)
        """The interval with which the proofs begin: the newest in which all present replicas were in the ISR,
        each of them since it had joined a leader or was elected alone; without one the first. An acknowledged
        record of before was on all of their logs then, or on none: who joins has truncated its log to the
        leader's (KIP-101), and followed it up to its high watermark.
        """
        self.known_from_start = self.start > 0 or from_creation
        """False: there may have been an unclean election before, which these states do not show."""
        self._elections_judged = self.start + 1 if self.start else 0
        self._in_doubt: list[DoubtfulElection] = []
        # Computed once: partitions that changed alike share this history, and ask the same of it.
        self._whole: dict[tuple[int, int], Whole | None] = {}
        self._last_in_sync: dict[tuple[int, int], int | None] = {}
        self._joined_after: dict[tuple[int, int], bool] = {}
        self._reached_without: dict[int, int | None] = {}
        self._without_replica: dict[int, list[int]] = {}
        self._lowest_in: dict[int, LowestMinIsr] = {}
        self._lowest_if_made_again: dict[int, int | None] = {}
        self._led_alone: dict[frozenset[int], tuple[LedAlone, ...]] = {}

    @property
    def newest(self) -> int:
        return len(self.intervals) - 1

    def _all_in_sync(self, *, from_creation: bool) -> int:
        present = set(self.intervals[-1].registration.replicas)
        for index in range(self.newest, 0, -1):
            if not present.issubset(self.intervals[index].registration.isr):
                continue
            entries = [self._entry(broker, index) for broker in present]
            if all(from_creation if entry == 0 else proved for entry, proved in entries):
                return index
            if not from_creation and any(entry == 0 for entry, _ in entries):
                break  # that one was in the ISR all the time, and nothing shows how it came there
        return 0

    def _entry(self, broker: int, index: int) -> tuple[int, bool]:
        """The interval in which the broker came into the ISR in which it is at ``index``, and whether its log was
        the leader's then. 0: it was there from the first on.
        """
        while index > 0 and broker in self.intervals[index - 1].registration.isr:
            index -= 1
        now = self.intervals[index].registration
        return index, self._joins(broker, index) or (now.leader == broker and now.isr == (broker,))

    def acknowledges(self, index: int) -> bool:
        """Whether a leader could acknowledge with the ISR of this interval."""
        registration = self.intervals[index].registration
        if not registration.has_leader:
            return False
        lowest = self._lowest(registration.leader_epoch)
        reached = len(registration.isr) >= lowest.value
        if not reached:
            if lowest.assumed:
                self._files_used.add(registration.leader)
            if_made_again = self._if_made_again(registration.leader_epoch)
            self._snapshot_used |= if_made_again is not None and len(registration.isr) >= if_made_again
        return reached

    def lowest_min_isr(self, index: int) -> int:
        """The lowest min ISR that the leader of this interval may have had in force."""
        return self._lowest(self.intervals[index].registration.leader_epoch).value

    def _lowest(self, epoch: int) -> LowestMinIsr:
        """The lowest effective min ISR of that epoch's leader."""
        if epoch not in self._lowest_in:
            first, last = self._epoch_intervals(epoch)
            found = self._min_isr.lowest(*self._epoch_of(first, last))
            copies = min(len(one.registration.replicas) for one in self.intervals[first : last + 1])
            self._lowest_in[epoch] = found._replace(value=min(found.value, copies))
        return self._lowest_in[epoch]

    def _if_made_again(self, epoch: int) -> int | None:
        if epoch not in self._lowest_if_made_again:
            found = self._min_isr.lowest_if_made_again(*self._epoch_of(*self._epoch_intervals(epoch)))
            self._lowest_if_made_again[epoch] = found
        return self._lowest_if_made_again[epoch]

    def _epoch_intervals(self, epoch: int) -> tuple[int, int]:
        """The first and the last interval of a leader epoch."""
        first = bisect_left(self.intervals, epoch, key=_leader_epoch)
        return first, bisect_right(self.intervals, epoch, first, key=_leader_epoch) - 1

    def _epoch_of(self, first: int, last: int) -> tuple[int, int, int, int]:
        """Its leader, the offset and the time (ms) of its beginning, and the offset of its end."""
        began = self.intervals[first]
        return began.registration.leader, began.offset, began.since_ms, self._end(last)

    @cached_property
    def rests_on_snapshot(self) -> bool:
        """Whether what was proved before this was first asked needs the topic's min.insync.replicas in a snapshot
        to be its own, not that of an earlier topic of the same name. It stays so, as :attr:`rests_on_files`.
        """
        return self._snapshot_used

    @cached_property
    def rests_on_files(self) -> tuple[int, ...]:
        """The brokers whose files must set no lower min ISR than was assumed, for what was proved before this was
        first asked. It stays so: partitions whose logs are known of the same brokers share a history, and prove the
        same.
        """
        return tuple(sorted(self._files_used))

    def min_isr_reached_without(self, broker: int) -> int | None:
        """The time (ms) from which on records may have been acknowledged without the broker; None: none were."""
        if broker not in self._reached_without:
            last = self.last_in_sync(broker, self.newest)
            after = range(0 if last is None else last + 1, len(self.intervals))
            since = (self.intervals[index].since_ms for index in after if self.acknowledges(index))
            self._reached_without[broker] = next(since, None)
        return self._reached_without[broker]

    def led_alone(self, without: Collection[int]) -> tuple[LedAlone, ...]:
        """The times since a broker of ``without`` was last in the ISR in which a leader wrote, by its ISR."""
        key = frozenset(without)
        if key not in self._led_alone:
            last = max((i for b in key if (i := self.last_in_sync(b, self.newest)) is not None), default=-1)
            found: list[LedAlone] = []
            for index, one in enumerate(self.intervals[last + 1 :], last + 1):
                if not one.registration.has_leader or one.until_ms is None:
                    continue
                isr = tuple(sorted(one.registration.isr))
                acks_all = len(isr) >= self.lowest_min_isr(index)
                before = found[-1] if found else None
                now = (isr, one.since_ms, acks_all)
                if before is not None and (before.isr, before.until_ms, before.acks_all) == now:
                    found[-1] = before._replace(until_ms=one.until_ms)
                else:
                    found.append(LedAlone(isr, one.since_ms, one.until_ms, acks_all))
            self._led_alone[key] = tuple(found)
        return self._led_alone[key]

    def leaders_without(self, broker: int) -> tuple[int, ...]:
        """Who led since the broker was in the ISR last, in that order; empty where it never was."""
        last = self.last_in_sync(broker, self.newest)
        if last is None:
            return ()
        later = (one.registration for one in self.intervals[last + 1 :])
        return tuple(dict.fromkeys(one.leader for one in later if one.has_leader))

    def leads_since(self, broker: int, epoch: int | None) -> bool:
        """Whether the broker was the last leader, and the only one in ``epoch`` and since. An epoch of before these
        states: nobody knows.
        """
        states = [one.registration for one in self.intervals]
        if epoch is not None and epoch < states[0].leader_epoch:
            return False
        leaders = [one.leader for one in states if one.has_leader and one.leader_epoch >= (epoch or 0)]
        last = next((one.leader for one in reversed(states) if one.has_leader), None)
        return last == broker and (epoch is None or set(leaders) <= {broker})

    # Membership of the ISR

    def last_in_sync(self, broker: int, until: int) -> int | None:
        """The last interval up to ``until`` with the broker in the ISR."""
        key = (broker, until)
        if key not in self._last_in_sync:
            found = (i for i in range(until, -1, -1) if broker in self.intervals[i].registration.isr)
            self._last_in_sync[key] = next(found, None)
        return self._last_in_sync[key]

    def in_sync_from(self, broker: int) -> int:
        """The interval in which the broker came into the ISR for the last time; beyond the newest: it never did."""
        last = self.last_in_sync(broker, self.newest)
        return self.newest + 1 if last is None else self._entry(broker, last)[0]

    def joined_after(self, broker: int, index: int) -> bool:
        """Whether the broker joined the ISR of a leader after that interval: it follows that leader's log since."""
        key = (broker, index)
        if key not in self._joined_after:
            later = range(index + 1, len(self.intervals))
            self._joined_after[key] = any(self._joins(broker, at) for at in later)
        return self._joined_after[key]

    def _joins(self, broker: int, index: int) -> bool:
        """Whether a leader added the broker to the ISR: it had caught up then."""
        if index == 0:
            return False
        before, now = self.intervals[index - 1].registration, self.intervals[index].registration
        if broker in before.isr or broker not in now.isr:
            return False
        same_epoch = now.has_leader and now.leader_epoch == before.leader_epoch
        return (same_epoch and now.leader != broker) or added_by_leader(before, now, broker)

    def may_hold_branch(self, election: DoubtfulElection, brokers: Iterable[int]) -> Iterator[int]:
        """Those of ``brokers`` that had a replica then and are not known to have followed that leader or a later
        one: the log may still hold what that leader lacked.
        """
        before = self.intervals[max(election.at - 1, 0)].registration
        for broker in brokers:
            had_replica = broker in before.replicas and broker != election.leader
            if had_replica and not self.joined_after(broker, election.at):
                yield broker

    # Replicas that held everything

    def whole(self, broker: int, until: int | None = None) -> Whole | None:
        """Whether the broker's replica held every acknowledged record at interval ``until`` (default: now) of the
        branch that the elections up to then left; None: that is not proved.
        """
        at = self.newest if until is None else until
        key = (broker, at)
        if key not in self._whole:
            self._whole[key] = self._judge(broker, at)
        return self._whole[key]

    def _judge(self, broker: int, until: int) -> Whole | None:
        last = self.last_in_sync(broker, until)
        if last is None:
            return None
        later = range(last + 1, until + 1)
        if any(self.acknowledges(index) for index in later):
            return None
        if any(election.unclean and last < election.at <= until for election in self._doubts_until(until)):
            return None  # it may have followed that leader, and truncated its log
        proved_at = self._proved_at(broker, last)
        if proved_at is None or not self._same_log(broker, proved_at, until):
            return None
        restarts = (
            self._with_elr_evidence(broker, one) for one in self._restarts_between(broker, proved_at, until)
        )
        return Whole(last, tuple(one for one in restarts if one.stop is not LastStop.CLEAN), proved_at)

    def _with_elr_evidence(self, broker: int, restart: BrokerRestart) -> BrokerRestart:
        """The restart with what became of the broker's place in this partition's ELR when it registered."""
        after = bisect_right(self.intervals, restart.offset, key=_offset) - 1
        if after < 1:
            return restart
        now, before = self.intervals[after].registration, self.intervals[after - 1].registration
        if broker in now.elr:
            return restart._replace(stop=LastStop.CLEAN) if restart.elr_on else restart
        with_it = self.intervals[after].since_ms == restart.time_ms
        left = broker in before.elr and now.isr == before.isr and set(before.elr) == {*now.elr, broker}
        return restart._replace(stop=LastStop.UNCLEAN) if with_it and left else restart

    def _proved_at(self, broker: int, last: int) -> int | None:
        """The last interval at which the broker is known to have held everything, up to ``last``.

        It is the one in which a leader let it join the ISR. A leader that was elected from outside the ISR joins
        it without proof, and counts from before; after an unclean election its log is the branch. None: the
        controller put it into an empty ISR, because a reassignment was cancelled while nobody led.
        """
        index = last
        while index > self.start:
            if self._joins(broker, index):
                return index
            before = self.intervals[index - 1].registration
            if broker not in before.isr:
                earlier = self.whole(broker, index - 1)
                if earlier is not None:
                    return earlier.proved_at
                return index if self.intervals[index].registration.leader == broker else None
            if any(e.at == index and e.leader == broker and e.unclean for e in self._doubts_until(index)):
                return index
            index -= 1
        return self.start

    def lost_disk(self, broker: int) -> bool:
        """Whether the broker registered again without the log dir in which its replica held every record that was
        acknowledged while it was in the ISR last.
        """
        last = self.last_in_sync(broker, self.newest)
        proved_at = None if last is None else self._proved_at(broker, last)
        return proved_at is not None and not self._same_disk(broker, proved_at, self.newest)

    def _same_log(self, broker: int, start: int, until: int) -> bool:
        """Whether the broker had the replica all the time, and lost none of its log dirs."""
        without = self._intervals_without(broker)
        if bisect_left(without, start) < bisect_right(without, until):
            return False
        return self._same_disk(broker, start, until)

    def _same_disk(self, broker: int, start: int, until: int) -> bool:
        for restart in self._restarts_between(broker, start, until):
            at = self.intervals[bisect_left(self.intervals, restart.offset, key=_offset) - 1]
            directory = at.registration.directory(broker)
            placed = directory not in _UNPLACED
            gone = directory not in restart.dirs if placed and restart.dirs else bool(restart.lost_dirs)
            if gone:
                return False
        return True

    def _intervals_without(self, broker: int) -> Sequence[int]:
        """The intervals in which the broker had no replica."""
        if broker not in self._without_replica:
            states = enumerate(self.intervals)
            self._without_replica[broker] = [i for i, s in states if broker not in s.registration.replicas]
        return self._without_replica[broker]

    def _restarts_between(self, broker: int, since: int, until: int) -> tuple[BrokerRestart, ...]:
        """Its restarts after the change that began interval ``since`` and before the one that ended ``until``."""
        restarts = self._restarts.get(broker, ())
        first = bisect_right(restarts, self.intervals[since].offset, key=_offset)
        return restarts[first : bisect_left(restarts, self._end(until), key=_offset)]

    def _end(self, until: int) -> int:
        return self.intervals[until + 1].offset if until < self.newest else 2**63 - 1

    # Elections

    @cached_property
    def doubts(self) -> tuple[DoubtfulElection, ...]:
        """The elections of leaders that may have lacked acknowledged records, the oldest first."""
        return tuple(self._doubts_until(self.newest))

    def _doubts_until(self, until: int) -> Sequence[DoubtfulElection]:
        while self._elections_judged <= until:
            election = self._election(self._elections_judged)
            self._elections_judged += 1
            if election is not None:
                self._in_doubt.append(election)
        return self._in_doubt[: bisect_right(self._in_doubt, until, key=_at)]

    def _election(self, index: int) -> DoubtfulElection | None:
        interval = self.intervals[index]
        registration = interval.registration
        if index == 0:
            if registration.leader_recovery_state is not LeaderRecoveryState.RECOVERING:
                return None
            return DoubtfulElection(0, registration.leader, registration.leader_epoch, interval.since_ms, ())
        before = self.intervals[index - 1].registration
        leader, same_epoch = registration.leader, registration.leader_epoch == before.leader_epoch
        if not registration.has_leader or same_epoch or self._joins(leader, index):
            return None
        whole = self.whole(leader, index - 1)
        if whole is None:
            return DoubtfulElection(index, leader, registration.leader_epoch, interval.since_ms, ())
        if not whole.restarts:
            return None
        return DoubtfulElection(index, leader, registration.leader_epoch, interval.since_ms, whole.restarts)
