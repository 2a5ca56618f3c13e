"""Every controller whose address is known, asked at that address: what its answers say about the quorum.

A leader describes the quorum from its own side: a voter that fetches is up. Whether the others reach that voter,
whether some controllers are in a quorum of their own, and whether brokers find the voters of today, shows only by
asking the addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from recovery.membership.lost_quorum import EPOCH_MARGIN
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import KnownBrokers, MemberState, QuorumHealth
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet, majorities_overlap
from recovery.model import Unknown, Why
from recovery.wording.quantity_text import both, counted

FEW = 6
"""So many nodes are named in a sentence."""


class AskedController(NamedTuple):
    """What answers at one address. ``node`` and ``leader`` (the leader that it knows) are -1 where not known.

    ``led``: the quorum that it leads itself. ``blank``: a controller runs there that has loaded no metadata.
    ``problem``: why it told nothing.
    """

    address: str
    node: int = -1
    cluster_id: str = ""
    leader: int = -1
    led: Quorum | None = None
    blank: bool = False
    problem: Unknown | None = None

    @property
    def reached(self) -> bool:
        """Whether anything answered, be it to refuse."""
        return self.blank or self.problem is None or self.problem.why is not Why.NOT_ANSWERED


class MetadataRetention(NamedTuple):
    """``metadata.max.retention.ms`` and ``metadata.max.retention.bytes`` of a controller; -1: no limit."""

    ms: int
    size: int


class QuorumProblem(StrEnum):
    """What the answers show, the worst first."""

    SEVERAL_QUORUMS = "several quorums"
    NOT_FOLLOWED = "not followed"
    OLDER_EPOCH = "older epoch"
    OLD_DISK = "old disk"
    ENDPOINT_LEADS_NOWHERE = "endpoint leads nowhere"
    NEW_DISK = "new disk"
    LEADER_NOT_NAMED = "leader not named"


class ControllerFinding(NamedTuple):
    """A problem in one line, without a full stop."""

    problem: QuorumProblem
    text: str


def old_voters(older: VoterSet, rebuilt: Collection[ReplicaKey]) -> tuple[str, ...]:
    """Who of the ``older`` voters must not run: not those that the rebuild kept, which are the quorum now. Where it
    gave one's node id to another disk, with the disk.
    """
    return old_voter_names(older.keys, rebuilt)


def old_voter_names(older: Collection[ReplicaKey], rebuilt: Collection[ReplicaKey]) -> tuple[str, ...]:
    """The same of the disks of these voters, each name once."""
    ids = {key.id for key in rebuilt}
    gone = (
        key for key in older if not any(Voter(new).matches(key) or Voter(key).matches(new) for new in rebuilt)
    )
    names = (f"{key.id} (with the disk {key.directory_id})" if key.id in ids else str(key.id) for key in gone)
    return tuple(dict.fromkeys(names))


def controllers_text(names: Sequence[str]) -> str:
    """``controller 100``, ``controllers 100 and 101``."""
    return f"controller{'' if len(names) == 1 else 's'} {both(names)}"


def old_voters_stopped(names: Sequence[str]) -> str:
    """What is done about old voters that run, without a full stop."""
    log_dirs = "its log dirs" if len(names) == 1 else "their log dirs"
    return f"Stop {controllers_text(names)}, and {old_log_moved(f'out of {log_dirs}')}"


def old_log_moved(out_of: str) -> str:
    """What is done with the metadata log of an old voter. Its log dir is never wiped: where the node is a broker
    too, the same directory may hold the only copy of partitions.
    """
    return f"move __cluster_metadata-0 {out_of} (keep all else there: a broker's records may be beside it)"


NEW_METADATA_LOG = (
    f"Stop it, {old_log_moved('out of its log dirs')}, set metadata.log.dir to a new directory, format with"
    " --no-initial-controllers --ignore-formatted, and start it"
)
"""How a node comes back that has an old voter's metadata log; so on 4.4.0 with the records of a combined node."""


class RememberedQuorum(NamedTuple):
    """The cluster's quorum as it was seen ``at`` a time: its leader's epoch, its voters and their addresses;
    ``replaced``: the voters that a rebuild replaced, as far as they are known. ``has_led`` False: a rebuild made
    it, and nobody has seen it lead since. ``rebuilt_epoch``: the epoch of the rebuild that it goes on from; None:
    none is known.
    """

    epoch: int
    at: str
    addresses: tuple[str, ...]
    voters: tuple[ReplicaKey, ...]
    replaced: tuple[ReplicaKey, ...] = ()
    has_led: bool = True
    rebuilt_epoch: int | None = None

    def is_beyond(self, quorum: Quorum) -> bool:
        """Whether the quorum is so far behind that it is not the one that was seen: an election is one epoch."""
        return rebuilt_between(quorum.leader_epoch, self.epoch)

    def older(self, quorum: Quorum, asked: ControllersAsked | None = None) -> tuple[ControllerFinding, ...]:
        """That voters which were replaced by a rebuild lead; ``asked``: what the rebuilt ones answer."""
        if not self.is_beyond(quorum):
            return ()
        gone = old_voters(quorum.voters, self.voters)
        where = ",".join(self.addresses) or "HOST:PORT"
        named = both(list(map(str, self.voters)))
        forbidden = {
            at.address
            for voter in quorum.voters.voters
            for at in voter.endpoints
            if not any(voter.matches(key) for key in self.voters)
        }
        taken = sorted(forbidden.intersection(self.addresses))
        answers = [] if asked is None else [asked.at(address) for address in self.addresses]
        down = bool(answers) and all(one is not None and not one.reached for one in answers)
        rebuilt = (
            f"Nothing answers at {both(self.addresses)}: start controller {named}, the rebuilt quorum, with this"
            " disk"
            if down
            else f"Then start controller {named}, the rebuilt quorum, with this disk (directory.id in"
            f" meta.properties): who answers at {both(taken)} now may be an old voter"
            if taken
            else f"The rebuilt quorum: ktriage quorum status --bootstrap-controller {where}"
        )
        return (
            ControllerFinding(
                QuorumProblem.OLDER_EPOCH,
                f"epoch {quorum.leader_epoch:,} IS OLDER than epoch {self.epoch:,}, in which this cluster's quorum"
                f" was {'led' if self.has_led else 'rebuilt'} at {self.at}:"
                f"{' it was rebuilt before that, and' if self.has_led else ''} old voters lead here. They must not"
                " run."
                f" {old_voters_stopped(gone)}. {rebuilt}",
            ),
        )


@dataclass(frozen=True, slots=True)
class ControllersAsked:
    """The answers by address. ``servers``: what each broker and controller runs with as
    controller.quorum.bootstrap.servers, by "broker 1" or "controller 100"; None where it did not tell.
    ``brokers``: those that are registered, and who of them answers. ``retention``: how long the controllers that
    told it keep the metadata log, by "controller 100".
    """

    controllers: tuple[AskedController, ...] = ()
    servers: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    brokers: KnownBrokers = KnownBrokers()  # noqa: RUF009  # frozen
    retention: Mapping[str, MetadataRetention] = field(default_factory=dict)

    def at(self, address: str) -> AskedController | None:
        """The answer at that address; None: it was not asked."""
        return next((one for one in self.controllers if one.address == address), None)

    @property
    def not_reached(self) -> tuple[AskedController, ...]:
        return tuple(one for one in self.controllers if not one.reached)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was not reached, told nothing, or was not asked; with counts."""
        mute = [one for one in self.controllers if one.reached and one.problem is not None and not one.blank]
        parts = []
        for group, what in ((self.not_reached, "not reached"), (mute, "answered and told nothing")):
            named = "; ".join(f"{one.address}: {_why(one)}" for one in group)
            parts += [f"{len(group)} {what} ({named})"] if group else []
        unknown = sorted(name for name, servers in self.servers.items() if servers is None)
        if not self.brokers.asked:
            parts.append("no broker asked")
        elif unknown:
            parts.append(f"settings of {node_names(unknown)} not known")
        return tuple(parts)

    @property
    def counts(self) -> str:
        """How many addresses were asked, and what was left out."""
        asked = counted(len(self.controllers), "controller address", "controller addresses")
        return ", ".join((f"{asked} asked", *(self.left_out or ("all reached",))))

    @property
    def cut_off(self) -> bool:
        """Whether no controller was reached from here, as where a firewall lets clients reach brokers alone: then
        an address without an answer says nothing about the controllers.
        """
        return not any(one.reached for one in self.controllers)

    def unreachable_voters(self, health: QuorumHealth) -> tuple[Voter, ...]:
        """Voters that fetch, while none of their registered endpoints leads to them from here, and others' do."""
        if self.cut_off:
            return ()
        return tuple(
            voter
            for voter in health.quorum.voters.voters
            if _fetches(health, voter)
            and voter.endpoints
            and all(self._misses(voter, at) for at in voter.endpoints)
        )

    def _misses(self, voter: Voter, at: VoterEndpoint) -> bool:
        answer = self.at(at.address)
        if answer is None:
            return False  # not asked
        return not answer.reached or answer.node not in (-1, voter.key.id)

    def strength(self, health: QuorumHealth) -> str:
        """How many failures the quorum tolerates, where an endpoint that leads nowhere may count as a failure."""
        missed = {voter.key for voter in self.unreachable_voters(health)}
        found = health.strength
        if not missed:
            return str(found)
        spare = sum(key not in missed for key in found.up) - found.voters.majority
        more = counted(spare, "more failure") if spare > 0 else "no more failures"
        return (
            f"tolerates {more} for certain: {len(found.up)} of {counted(len(found.voters.voters), 'voter')} fetch,"
            f" {both([key.id for key in sorted(missed)])} not reached at the registered endpoint, majority"
            f" {found.voters.majority}"
        )

    def findings(self, health: QuorumHealth) -> tuple[ControllerFinding, ...]:
        """What is wrong, the worst first."""
        return (
            *self._quorums(health.quorum),
            *self._endpoints(health),
            *self._disks(health),
            *self._names(health),
        )

    def others(self, quorum: Quorum) -> tuple[AskedController, ...]:
        """Those that lead another quorum; each quorum once."""
        quorums: dict[object, AskedController] = {}
        for one in self.controllers:
            if one.led is None or _same(quorum, one.led):
                continue
            quorums.setdefault((one.led.cluster_id, one.led.leader), one)
        return tuple(quorums.values())

    def second_quorum(self, quorum: Quorum) -> tuple[str, ...]:
        """The voters that a rebuild replaced by those of this ``quorum``, and that lead beside it; named as in
        :func:`old_voters`.
        """
        led = [other.led for other in self.others(quorum) if other.led is not None]
        older = {key for one in led if rebuilt_away(one, quorum) for key in one.voters.keys}
        return old_voter_names(sorted(older), quorum.voters.keys)

    def _quorums(self, quorum: Quorum) -> Iterator[ControllerFinding]:
        others = self.others(quorum)
        for one in others:
            assert one.led is not None
            other = one.led
            same = (
                "with the same cluster id" if other.cluster_id == quorum.cluster_id else "of other clusters"
            )
            voters = ", ".join(map(str, other.voters.keys))
            yield ControllerFinding(
                QuorumProblem.SEVERAL_QUORUMS,
                f"{len(others) + 1} QUORUMS {same}: {one.address} leads another quorum: cluster"
                f" {other.cluster_id}, leader {other.leader.id} (epoch {other.leader_epoch}), voters {voters}"
                f"{_of_rebuild(quorum, other)}",
            )

    def _endpoints(self, health: QuorumHealth) -> Iterator[ControllerFinding]:
        for voter in self.unreachable_voters(health):
            where = ", ".join(at.address for at in voter.endpoints)
            answer = self.at(voter.endpoints[0].address)
            who = "nothing answers" if answer is None or not answer.reached else f"node {answer.node} answers"
            why = "" if answer is None or answer.reached else f" ({_why(answer)})"
            yield ControllerFinding(
                QuorumProblem.ENDPOINT_LEADS_NOWHERE,
                f"voter {voter.key.id} fetches, but at its registered endpoint {where} {who} from here{why}. If the"
                " other controllers do not reach it either, it cannot vote for them, and nobody follows it when it"
                f" leads: correct advertised.listeners on its host and restart it (ktriage quorum update-endpoint"
                f" {voter.key.id} --endpoint LISTENER://HOST:PORT)",
            )

    def _disks(self, health: QuorumHealth) -> Iterator[ControllerFinding]:
        for voter in health.quorum.voters.voters:
            if _fetches(health, voter):
                continue
            node = voter.key.id
            fetching = [m.key for m in health.members if m.key.id == node and m.fetches]
            swap = f"ktriage quorum replace {node} --why disk"
            if fetching:
                yield ControllerFinding(
                    QuorumProblem.NEW_DISK,
                    f"controller {node} runs with a new disk ({fetching[0].directory_id}), which has no vote; the"
                    f" voter is {voter.key}. Put that disk back, or give the new one its vote: {swap}",
                )
                continue
            runs = next((one for one in self.controllers if self._is(one, voter) and one.reached), None)
            if runs is not None:
                loaded = "has loaded no metadata and " if runs.blank else ""
                yield ControllerFinding(
                    QuorumProblem.NEW_DISK,
                    f"controller {node} answers at {runs.address}, {loaded}does not fetch as voter {voter.key}: it"
                    " runs with a new disk, or does not find the leader. Compare directory.id in meta.properties of"
                    " its metadata log dir",
                )

    @staticmethod
    def _is(one: AskedController, voter: Voter) -> bool:
        if one.node >= 0:
            return one.node == voter.key.id
        return one.blank and any(at.address == one.address for at in voter.endpoints)

    def _names(self, health: QuorumHealth) -> Iterator[ControllerFinding]:
        """Nodes that find nobody once the voters which their settings name are gone. A voter has the others in its
        log; a static quorum (kraft.version 0) does not read the setting. One of another quorum must not come here.
        """
        quorum = health.quorum
        if quorum.kraft_version < 1:
            return
        registered = {at.address for voter in quorum.voters.voters for at in voter.endpoints}
        groups: dict[tuple[str, ...], list[str]] = {}
        led = [other.led.voters.keys for other in self.others(quorum) if other.led is not None]
        voting = {f"controller {key.id}" for keys in (quorum.voters.keys, *led) for key in keys}
        for name, servers in self.servers.items():
            votes = name in voting
            unknown = self.cut_off and not registered.issuperset(
                servers or ()
            )  # other names of voters, perhaps
            if servers and not votes and not unknown and self.unnamed_majority(quorum, servers):
                groups.setdefault(servers, []).append(name)
        voters = both([key.id for key in quorum.voters.keys])
        wanted = ",".join(self._where(voter) for voter in quorum.voters.voters)
        # Whoever names this voter alone is blind again once others are added and it fails.
        more = " and to the addresses of the voters that you add," if len(quorum.voters.voters) == 1 else ""
        for servers, names in groups.items():
            known = self.voters_named(quorum, servers)
            up = [v.key.id for v in quorum.voters.voters if v.key.id in known and _fetches(health, v)]
            one = len(names) == 1
            start, nodes = ("it starts", "this node") if one else ("they start", "these nodes one by one")
            when = f"once {both(up)} is down" if up else f"when the leader changes, or when {start}"
            which = f"only {both(sorted(known))}" if known else "none"
            yield ControllerFinding(
                QuorumProblem.LEADER_NOT_NAMED,
                f"{node_names(names)} will find no leader {when}: controller.quorum.bootstrap.servers there"
                f" ({', '.join(servers)}) names {which} of the voters {voters}. Set it to {wanted}{more} there, and"
                f" restart {nodes}",
            )

    def _where(self, voter: Voter) -> str:
        """Where the voter answers, or is registered."""
        answering = next((one.address for one in self.controllers if one.node == voter.key.id), "")
        registered = next((at.address for at in voter.endpoints), f"HOST-OF-{voter.key.id}:PORT")
        return answering or registered

    def voters_named(self, quorum: Quorum, servers: tuple[str, ...]) -> frozenset[int]:
        """The voters that these addresses lead to, by what is registered and by who answers there."""
        named = set()
        for voter in quorum.voters.voters:
            own = {at.address for at in voter.endpoints}
            for server in servers:
                answer = self.at(server)
                if server in own or (answer is not None and answer.node == voter.key.id):
                    named.add(voter.key.id)
        return frozenset(named)

    def unnamed_majority(self, quorum: Quorum, servers: tuple[str, ...]) -> bool:
        """Whether voters that these addresses do not name could lead without the others."""
        named = self.voters_named(quorum, servers)
        return sum(key.id not in named for key in quorum.voters.keys) >= quorum.voters.majority


def _fetches(health: QuorumHealth, voter: Voter) -> bool:
    return any(voter.matches(m.key) and m.state is not MemberState.SILENT for m in health.members)


def rebuilt_away(older: Quorum, newer: Quorum) -> bool:
    """Whether ``newer`` is so far ahead that it was rebuilt in the place of ``older``: an election is one epoch."""
    between = rebuilt_between(older.leader_epoch, newer.leader_epoch)
    return older.cluster_id == newer.cluster_id and between


def rebuilt_between(older: int, newer: int) -> bool:
    """Whether elections alone do not lead from one quorum epoch to the other: a rebuild adds a margin."""
    return newer - older >= EPOCH_MARGIN // 2


def _of_rebuild(one: Quorum, other: Quorum) -> str:
    """Which of two quorums goes on where one was rebuilt: elections alone do not get so far ahead."""
    older, newer = sorted((one, other), key=lambda quorum: quorum.leader_epoch)
    if not rebuilt_away(older, newer):
        return ""
    gone = old_voters(older.voters, newer.voters.keys)
    stopped = old_voters_stopped(gone)
    return (
        f". Epoch {newer.leader_epoch} is that of a rebuilt quorum, whose old voters must not run:"
        f" {stopped[0].lower()}{stopped[1:]}"
    )


def _same(quorum: Quorum, led: Quorum) -> bool:
    """Whether what is led there is this quorum; another voter may have been elected meanwhile, and a voter added or
    removed. A voter that was made the only one by a rebuild leads another quorum.
    """
    if led.cluster_id != quorum.cluster_id:
        return False
    is_voter = led.leader in quorum.voters.keys
    return led.leader == quorum.leader or (is_voter and majorities_overlap(led.voters, quorum.voters))


def node_names(names: Sequence[str]) -> str:
    """``broker 1``, ``brokers 1 and 2``, ``20 brokers (1, 2, 3, …)``."""
    ids: dict[str, list[str]] = {}
    for name in names:
        role, _, node = name.rpartition(" ")
        ids.setdefault(role, []).append(node)
    parts = []
    for role, nodes in ids.items():
        few = both(nodes) if len(nodes) <= FEW else f"({', '.join(nodes[:FEW])}, …)"
        parts.append(
            f"{role if len(nodes) == 1 else f'{role}s' if len(nodes) <= FEW else f'{len(nodes)} {role}s'} {few}"
        )
    return both(parts)


def _why(one: AskedController) -> str:
    """The reason without the address, which stands before it."""
    detail = one.problem.detail if one.problem is not None else ""
    return detail.removeprefix(f"{one.address}: ") or str(one.problem)
