"""How ready a cluster is for an incident: the weaknesses that would make it long or lose records, and a score.

Each check looks at one thing. What could not be looked at is no weakness and no strength: it is named, and counts
neither way in the score.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from recovery.cluster_health import elects_uncleanly
from recovery.controller.rules import MIN_ISR
from recovery.membership.controllers_asked import ControllerFinding, ControllersAsked, QuorumProblem
from recovery.membership.quorum_health import MemberRole, QuorumHealth
from recovery.model import Broker, PartitionState, Unknown, Why
from recovery.wording.quantity_text import both, brokers_text, counted, human_bytes, some_of

CLOCK_MS = 2_000
"""Two clocks that are this far apart spoil no timeline: times in the metadata log are of the controller's."""
RETENTION_MS = 24 * 3_600_000
"""An incident is looked at within a day of its beginning."""
RETENTION_BYTES = 20 * 1024 * 1024
"""Some 200,000 changes of partitions."""
DISK_FULL, DISK_NEARLY_FULL = 0.05, 0.15
"""The part of a disk that is free. A broker ends itself when its last log dir is full."""
MOST = 2 / 3
"""Of the points of all checks, those that must be known for a score."""
_NOT_ASKED = Unknown(Why.NOT_ASKED, "")


class Weight(StrEnum):
    """How much a weakness costs in the score, and at night."""

    LIGHT = "light"
    SERIOUS = "serious"
    GRAVE = "grave"

    @property
    def points(self) -> int:
        return _POINTS[self]


_POINTS = {Weight.LIGHT: 1, Weight.SERIOUS: 3, Weight.GRAVE: 10}


class Weakness(NamedTuple):
    """``evidence`` is what was looked at, in one sentence; ``mend`` what to do, and ``command`` the line that does
    it, where one line can: ``ktriage …`` without the words that name the cluster, or Kafka's own tool with
    ``BOOTSTRAP`` in the place of a broker's address.
    """

    weight: Weight
    evidence: str
    mend: str
    command: str = ""


class CheckResult(NamedTuple):
    """The result of one check, the worst weakness first. ``unknown``: why it, or some of it, was not looked at."""

    check: str
    worst: Weight
    weaknesses: tuple[Weakness, ...] = ()
    unknown: str = ""

    @property
    def complete(self) -> bool:
        return not self.unknown

    @property
    def lost(self) -> int:
        """Of the points that the check is worth."""
        return max((one.weight.points for one in self.weaknesses), default=0)


class DirRoom(NamedTuple):
    """A log dir. Bytes are -1 where they are not known."""

    broker: int
    path: str
    error: str | None
    total_bytes: int
    usable_bytes: int


class OperatorHost(NamedTuple):
    """The host and the user that would work at night. ``free_bytes`` where rescued records would be written; None:
    not known. ``journal_problem``: why nothing could be recorded, "" for no reason. ``journal_shared``: the journal
    and the lock are in a directory that was named, which others can use. ``clock_ms``: its time right before and
    right after the controller's was asked; None: the cluster has a time of its own (a simulation).
    """

    journal_shared: bool
    journal_problem: str = ""
    free_bytes: int | None = None
    rescue_at: str = "."
    clock_ms: tuple[int, int] | None = None


@dataclass(frozen=True)
class ReadinessFacts:
    """What the checks look at.

    ``reach``: why each broker was not reached from here, None where it was. ``rights``: missing permissions, in one
    line each; ``rights_unknown``: those that could not be asked. ``unseen``: why there may be topics that this
    caller does not see; "" where all are seen. ``elr``: whether the ELR is on, ``elr_offered``: whether the release
    has it. ``blocks_on_dead_leader``: the release has KAFKA-19522; None: not known.
    ``leaderless``: that controllers were asked and none leads; "" where one does, or that is not known.
    ``findings``: what the controllers' own answers, ``asked``, show to be wrong; None: they were not asked.
    ``static_upgrade``: the release can make a static quorum dynamic.
    ``log_since_ms``: the oldest change that the metadata log holds; None where that is the first of all.
    """

    now_ms: int
    brokers: Sequence[Broker]
    reach: Mapping[int, Unknown | None]
    states: Sequence[PartitionState]
    operator: OperatorHost
    rights: Sequence[str] = ()
    rights_unknown: Sequence[str] = ()
    unseen: str = ""
    configs: Mapping[str, Mapping[str, str] | Unknown] = field(default_factory=dict)
    elr: bool | Unknown = _NOT_ASKED
    elr_offered: bool = False
    blocks_on_dead_leader: bool | None = None
    quorum: QuorumHealth | Unknown = _NOT_ASKED
    leaderless: str = ""
    findings: Sequence[ControllerFinding] = ()
    asked: ControllersAsked | None = None
    static_upgrade: bool = False
    log_since_ms: int | Unknown | None = None
    dirs: Mapping[int, Sequence[DirRoom] | Unknown] = field(default_factory=dict)
    largest_log: int | None = None


@dataclass(frozen=True)
class Readiness:
    """All checks, in their order."""

    results: tuple[CheckResult, ...]

    @property
    def weaknesses(self) -> tuple[tuple[str, Weakness], ...]:
        """Each with its check, the gravest first."""
        every = [(one.check, weakness) for one in self.results for weakness in one.weaknesses]
        return tuple(sorted(every, key=lambda pair: -pair[1].weight.points))

    @property
    def incomplete(self) -> tuple[CheckResult, ...]:
        return tuple(one for one in self.results if not one.complete)

    @property
    def score(self) -> int | None:
        """From 0 to 100: of the points of all checks that told something, those that were not lost. A check loses
        the points of its gravest weakness; any grave one halves the rest. None: too few checks told anything.
        """
        counting = [one for one in self.results if one.complete or one.weaknesses]
        whole = sum(one.worst.points for one in counting)
        if whole < MOST * sum(one.worst.points for one in self.results):
            return None
        points = round(100 * (whole - sum(one.lost for one in counting)) / whole)
        return points // 2 if any(one.lost >= Weight.GRAVE.points for one in counting) else points

    def at_least(self, weight: Weight) -> bool:
        """Whether there is a weakness of that weight, or a check that could show one could not be made."""
        return any(
            one.lost >= weight.points or (not one.complete and one.worst.points >= weight.points)
            for one in self.results
        )


FIRST_STATUS = "this is an incident: do what ktriage status says, in its order"
NOT_NOW = "not now, but when the incident is over"
"""A change of min.insync.replicas, say, empties the ELR, and then nobody who returns is elected."""


def readiness(facts: ReadinessFacts) -> Readiness:
    """Makes every check. During an incident no change of a configuration is advised before it is over."""
    results = tuple(_check_result(check, worst, check_facts, facts) for check, worst, check_facts in CHECKS)
    if not any(one.mend == FIRST_STATUS for each in results for one in each.weaknesses):
        return Readiness(results)
    return Readiness(
        tuple(each._replace(weaknesses=tuple(map(_after_incident, each.weaknesses))) for each in results)
    )


def _after_incident(weakness: Weakness) -> Weakness:
    if weakness.command.startswith("ktriage "):
        return weakness
    return weakness._replace(mend=f"{NOT_NOW}: {weakness.mend}", command="")


def _check_result(check: str, worst: Weight, check_facts: _Check, facts: ReadinessFacts) -> CheckResult:
    """Sorts what a check yields: weaknesses, and texts that say what was not looked at."""
    yielded = list(check_facts(facts))
    weaknesses = sorted(
        (one for one in yielded if isinstance(one, Weakness)), key=lambda one: -one.weight.points
    )
    return CheckResult(
        check, worst, tuple(weaknesses), "; ".join(one for one in yielded if isinstance(one, str))
    )


_Check = Callable[[ReadinessFacts], Iterator[Weakness | str]]


def _now(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    offline = sum(state.offline for state in facts.states)
    short = sum(not state.offline and len(state.isr) < len(state.replicas) for state in facts.states)
    if offline:
        yield Weakness(
            Weight.GRAVE,
            f"{counted(offline, 'partition')} without a leader",
            "this is an incident",
            "ktriage status",
        )
    if short:
        yield Weakness(
            Weight.SERIOUS,
            f"{counted(short, 'partition')} with a replica that is not in sync",
            "find out which broker is missing, before the next one fails",
            "ktriage status",
        )
    if facts.leaderless:
        yield f"{facts.leaderless}: which partitions have a leader now is not known"
    yield from _hidden_topics(facts)


def _hidden_topics(facts: ReadinessFacts) -> Iterator[str]:
    """What there may be of topics that nobody could look at."""
    if facts.unseen:
        yield facts.unseen


def _reach(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    fenced = {broker.id for broker in facts.brokers if broker.fenced}
    for broker, problem in sorted(facts.reach.items()):
        if broker in fenced:
            how = "answers: the controllers do not hear it" if problem is None else "was not reached"
            yield Weakness(
                Weight.GRAVE, f"broker {broker} is fenced and {how}", FIRST_STATUS, "ktriage status"
            )
        elif problem is not None and facts.leaderless:
            yield Weakness(
                Weight.GRAVE,
                f"broker {broker} was not reached; while no controller leads nobody knows whether it runs",
                FIRST_STATUS,
                "ktriage status",
            )
        elif problem is not None:
            yield Weakness(
                Weight.GRAVE,
                f"broker {broker} was not reached from here: {problem}",
                "let this host reach its advertised address, or name another one",
                f"ktriage check --broker {broker}=HOST:PORT",
            )
    if not facts.reach:
        yield "no broker was asked"


def _rights(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    for line in facts.rights:
        yield Weakness(
            Weight.SERIOUS, line, "grant it to the user who is on call (kafka-acls.sh)", "ktriage check"
        )
    yield from facts.rights_unknown


def _replicated(facts: ReadinessFacts) -> Mapping[str, int]:
    """The fewest replicas of a partition, by topic."""
    factors: dict[str, int] = {}
    for state in facts.states:
        factors[state.topic] = min(len(state.replicas), factors.get(state.topic, len(state.replicas)))
    return factors


def _topics(names: Collection[str]) -> str:
    return f"{counted(len(names), 'topic')} ({some_of(sorted(names), 3)})"


def _factor(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    yield from _hidden_topics(facts)
    single = [topic for topic, factor in _replicated(facts).items() if factor == 1]
    if single:
        yield Weakness(
            Weight.GRAVE,
            f"{_topics(single)} with one replica: one disk is all there is",
            "give them three replicas (kafka-reassign-partitions.sh)",
        )


def _min_isr(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    yield from _hidden_topics(facts)
    low, high, unknown = [], [], []
    for topic, factor in _replicated(facts).items():
        config = facts.configs.get(topic)
        value = config.get(MIN_ISR, "") if isinstance(config, Mapping) else ""
        if not value.isdecimal():
            unknown.append(topic)
        elif int(value) == 1 and factor > 1:
            low.append(topic)
        elif int(value) >= factor > 1:
            high.append(topic)
    if low:
        yield Weakness(
            Weight.SERIOUS,
            f"{_topics(low)} with {MIN_ISR} 1: what one broker alone acknowledged is lost with its disk",
            f"set {MIN_ISR} to 2, topic by topic{_and_others(low)}",
            _configure(low[0], f"{MIN_ISR}=2"),
        )
    factors = _replicated(facts)
    lowered = [topic for topic in high if factors[topic] > 2]
    if high:
        yield Weakness(
            Weight.SERIOUS,
            f"{_topics(high)} with {MIN_ISR} equal to the number of replicas: one broker down stops acks=all",
            f"set {MIN_ISR} to one less than the replicas, topic by topic{_and_others(lowered)}"
            + ("" if len(lowered) == len(high) else "; topics with two replicas need a third one first"),
            _configure(lowered[0], f"{MIN_ISR}={factors[lowered[0]] - 1}") if lowered else "",
        )
    if unknown:
        yield f"{MIN_ISR} of {_topics(unknown)} is not known"


def _and_others(topics: Sequence[str]) -> str:
    return f" (the line is for {topics[0]} alone)" if len(topics) > 1 else ""


def _configure(topic: str, config: str) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server BOOTSTRAP --alter --entity-type topics --entity-name {topic}"
        f" --add-config {config}"
    )


def _unclean(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    yield from _hidden_topics(facts)
    unclean = sorted(topic for topic, config in facts.configs.items() if elects_uncleanly(config))
    if unclean:
        yield Weakness(
            Weight.GRAVE,
            f"{_topics(unclean)} with unclean.leader.election.enable: Kafka elects a replica that lacks records,"
            " before anybody can look",
            f"turn it off where it is set: for the cluster, or topic by topic{_and_others(unclean)}",
            _configure(unclean[0], "unclean.leader.election.enable=false"),
        )
    unknown = [topic for topic, config in facts.configs.items() if not isinstance(config, Mapping)]
    if unknown:
        yield f"the configuration of {_topics(unknown)} is not known"


def _elr(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    if isinstance(facts.elr, Unknown):
        yield f"whether the ELR is on is not known ({facts.elr})"
    elif not facts.elr and facts.elr_offered:
        yield Weakness(
            Weight.SERIOUS,
            "eligible leader replicas (KIP-966) are off: a broker that returns with an empty disk can be elected"
            " (KAFKA-14139), and nobody knows who is safe",
            "turn them on",
            "kafka-features.sh --bootstrap-server BOOTSTRAP upgrade --feature eligible.leader.replicas.version=1",
        )


def _dead_leader(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    if facts.blocks_on_dead_leader is None:
        yield "whether the controllers have KAFKA-19522 is not known"
    elif facts.blocks_on_dead_leader:
        yield Weakness(
            Weight.SERIOUS,
            "controllers before 4.1 with the ELR on elect nobody but the last known leader, even when it is dead"
            " (KAFKA-19522)",
            "upgrade the controllers to 4.1 or later",
        )


def _racks(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    yield from _hidden_topics(facts)
    racks = {broker.id: broker.rack for broker in facts.brokers}
    without = sorted(broker for broker, rack in racks.items() if not rack)
    if without:
        yield Weakness(
            Weight.LIGHT,
            f"{brokers_text(without)} without broker.rack: replicas are placed as if nothing failed together",
            "set broker.rack and restart",
        )
    if len({rack for rack in racks.values() if rack}) < 2:
        return
    together: dict[str, list[PartitionState]] = {}
    for state in facts.states:
        theirs = {racks.get(broker) for broker in state.replicas}
        (rack,) = theirs if len(theirs) == 1 else (None,)
        if rack and len(state.replicas) > 1:
            together.setdefault(rack, []).append(state)
    for rack, states in sorted(together.items()):
        names = [str(state.tp) for state in states]
        yield Weakness(
            Weight.SERIOUS,
            f"{counted(len(states), 'partition')} with all replicas in rack {rack} ({some_of(names, 3)}): one power"
            " failure takes all of them",
            "move one replica of each to another rack (kafka-reassign-partitions.sh)",
        )


def _quorum(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    quorum = facts.quorum
    if facts.leaderless:
        yield Weakness(Weight.GRAVE, facts.leaderless, FIRST_STATUS, "ktriage quorum status")
        return
    if isinstance(quorum, Unknown):
        yield f"the quorum is not known ({quorum})"
        return
    voters = [key.id for key in quorum.quorum.voters.keys]
    dead = [member.key.id for member in quorum.dead_voters]
    if dead:
        yield Weakness(
            Weight.GRAVE,
            f"controller {both(dead)} does not fetch: {quorum.strength}",
            FIRST_STATUS,
            "ktriage quorum status",
        )
    if len(voters) in (1, 2):
        yield Weakness(
            Weight.GRAVE,
            f"{counted(len(voters), 'voter')}: one controller that fails stops every election and every change",
            "add voters up to three" if quorum.dynamic else "start three controllers",
            "ktriage quorum status",
        )
    elif len(voters) % 2 == 0:
        yield Weakness(
            Weight.LIGHT,
            f"{counted(len(voters), 'voter')}: an even number tolerates no more failures than one voter less",
            "add or remove one voter",
            "ktriage quorum status",
        )
    shared = sorted(set(voters) & {broker.id for broker in facts.brokers})
    if shared:
        yield Weakness(
            Weight.LIGHT,
            f"{both(shared)} {'is' if len(shared) == 1 else 'are'} voter and broker in one process: one host takes"
            " both, and its restart too",
            "give the controllers hosts of their own",
        )
    if not quorum.dynamic and facts.static_upgrade:
        yield Weakness(
            Weight.SERIOUS,
            "the voters are static (controller.quorum.voters): to replace a controller, all must be restarted",
            "make the quorum dynamic",
            "ktriage quorum upgrade --dry-run",
        )
    for one in facts.findings:
        if one.problem is not QuorumProblem.ENDPOINT_LEADS_NOWHERE:
            yield Weakness(Weight.GRAVE, one.text, "as it says", "ktriage quorum status")


def _controllers(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    if facts.asked is None or not facts.asked.controllers:
        yield "no address of a controller was asked"
        return
    for one in facts.findings:
        if one.problem is QuorumProblem.ENDPOINT_LEADS_NOWHERE:
            yield Weakness(Weight.SERIOUS, one.text, "as it says", "ktriage quorum status")
    named = frozenset() if isinstance(facts.quorum, Unknown) else _endpoints_named(facts.quorum, facts.asked)
    for answer in facts.asked.not_reached:
        if answer.address not in named:
            yield Weakness(
                Weight.SERIOUS,
                f"the controller at {answer.address} was not reached from here: {answer.problem}",
                "let this host reach the controllers' listener: without it nobody sees a lost quorum",
                "ktriage quorum status",
            )


def _endpoints_named(quorum: QuorumHealth, asked: ControllersAsked) -> frozenset[str]:
    """The addresses of voters of which another sentence tells: that they are down, or not where they registered."""
    dead = {member.key for member in quorum.dead_voters}
    voters = [voter for voter in quorum.quorum.voters.voters if voter.key in dead]
    return frozenset(
        at.address for voter in (*voters, *asked.unreachable_voters(quorum)) for at in voter.endpoints
    )


def _metadata_log(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    since = facts.log_since_ms
    if isinstance(since, Unknown):
        yield f"the metadata log is not known ({since})"
    elif since is not None and facts.now_ms - since < RETENTION_MS:
        hours = max(facts.now_ms - since, 0) / 3_600_000
        yield Weakness(
            Weight.SERIOUS,
            f"the metadata log goes back {hours:.1f} hours: of what was acknowledged before, nothing can be proved",
            "raise metadata.max.retention.ms and .bytes on the controllers",
        )
    retention = {} if facts.asked is None else facts.asked.retention
    if not retention:
        yield "no controller told how long it keeps the metadata log"
    for node, limit in sorted(retention.items()):
        short, small = 0 <= limit.ms < RETENTION_MS, 0 <= limit.size < RETENTION_BYTES
        if short or small:
            limits = []
            if short:
                limits.append(f"metadata.max.retention.ms {limit.ms:,} (less than a day)")
            if small:
                limits.append(f"metadata.max.retention.bytes {limit.size:,}")
            yield Weakness(
                Weight.SERIOUS,
                f"{node} keeps the metadata log too short: {both(limits)}",
                "keep a week, or 100 MiB (Kafka's defaults): verdicts stand on this log",
            )


def _copies(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    if isinstance(facts.quorum, Unknown):
        yield f"who has a copy of the metadata log is not known ({facts.quorum})"
        return
    observers = {member.key.id: member for member in facts.quorum.members if member.role is MemberRole.BROKER}
    voters = {key.id for key in facts.quorum.quorum.voters.keys}
    behind = sorted(
        broker.id
        for broker in facts.brokers
        if broker.id not in voters
        and (
            broker.id not in observers
            or not observers[broker.id].fetches
            or observers[broker.id] in facts.quorum.behind
        )
    )
    if behind:
        yield Weakness(
            Weight.SERIOUS,
            f"{brokers_text(behind)} without the newest metadata: a copy to rebuild a lost quorum from is missing",
            "find out why the broker does not fetch from the controllers",
            "ktriage quorum status",
        )


def _disks(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    for broker, dirs in sorted(facts.dirs.items()):
        if isinstance(dirs, Unknown):
            yield f"the log dirs of broker {broker} are not known ({dirs})"
            continue
        for one in dirs:
            where = f"{one.path} of broker {one.broker}"
            if one.error is not None:
                yield Weakness(
                    Weight.GRAVE, f"{where} has failed: {one.error}", FIRST_STATUS, "ktriage status"
                )
            elif one.total_bytes > 0 and one.usable_bytes >= 0:
                free = one.usable_bytes / one.total_bytes
                if free < DISK_NEARLY_FULL:
                    yield Weakness(
                        Weight.GRAVE if free < DISK_FULL else Weight.SERIOUS,
                        f"{where} has {human_bytes(one.usable_bytes)} free ({free:.0%}): a full log dir fails, and"
                        " with it its partitions",
                        "shorten retention, or add a disk",
                        "ktriage log-dirs",
                    )
    if not facts.dirs:
        yield "no log dir was listed"


def _clock(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    window = facts.operator.clock_ms
    if window is None:
        yield "a simulation has a time of its own"
    elif isinstance(facts.quorum, Unknown) or facts.quorum.quorum.now_ms <= 0:
        yield "the controller's clock is not known"
    else:
        before, after = window
        theirs = facts.quorum.quorum.now_ms
        apart = before - theirs if theirs < before else theirs - after
        if apart > CLOCK_MS:
            word = "behind" if theirs < before else "ahead of"
            yield Weakness(
                Weight.SERIOUS,
                f"the clock of controller {facts.quorum.quorum.leader.id} is {apart / 1000:,.1f} s {word} this"
                " host's: times of the timeline and of records do not agree",
                "synchronise the clocks (NTP), here too; brokers' clocks are told by no request",
            )


def _journal(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    operator = facts.operator
    if operator.journal_problem:
        yield Weakness(
            Weight.SERIOUS,
            f"nothing can be changed from here, because it could not be recorded: {operator.journal_problem}",
            "make the state directory usable",
            "ktriage info",
        )
    elif not operator.journal_shared:
        yield Weakness(
            Weight.LIGHT,
            "the journal and the lock are this user's alone: a colleague cannot resume what is left half done",
            "name a shared directory (state-dir in the profile)",
        )


def _rescue(facts: ReadinessFacts) -> Iterator[Weakness | str]:
    free, largest = facts.operator.free_bytes, facts.largest_log
    if free is None:
        yield "the free space here is not known"
    elif largest is None:
        yield "no broker told how large its logs are"
    elif free < largest:
        yield Weakness(
            Weight.SERIOUS,
            f"{human_bytes(free)} free in {facts.operator.rescue_at}, and the largest log has"
            f" {human_bytes(largest)}: what an election cuts off may not fit here",
            "work where there is more room",
        )


CHECKS: tuple[tuple[str, Weight, _Check], ...] = (
    ("partitions now", Weight.GRAVE, _now),
    ("brokers reached", Weight.GRAVE, _reach),
    ("permissions", Weight.SERIOUS, _rights),
    ("replicas", Weight.GRAVE, _factor),
    ("min ISR", Weight.SERIOUS, _min_isr),
    ("unclean elections", Weight.GRAVE, _unclean),
    ("eligible leaders", Weight.SERIOUS, _elr),
    ("known faults", Weight.SERIOUS, _dead_leader),
    ("racks", Weight.SERIOUS, _racks),
    ("quorum", Weight.GRAVE, _quorum),
    ("controllers reached", Weight.SERIOUS, _controllers),
    ("metadata log", Weight.SERIOUS, _metadata_log),
    ("copies of it", Weight.SERIOUS, _copies),
    ("disks", Weight.GRAVE, _disks),
    ("clocks", Weight.SERIOUS, _clock),
    ("journal", Weight.SERIOUS, _journal),
    ("rescue space", Weight.SERIOUS, _rescue),
)
"""Each check with the gravest weakness that it can show."""
