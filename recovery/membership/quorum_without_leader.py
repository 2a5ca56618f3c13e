"""A quorum without a leader: which hosts must come back, and how much of the log each of them has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from recovery.membership.controllers_asked import (
    controllers_text,
    node_names,
    old_voter_names,
    old_voters_stopped,
)
from recovery.membership.possible_only_voter import only_voter_warning, rebuild_evidence, stop_if_rebuilt
from recovery.membership.voters import ReplicaKey
from recovery.wording.quantity_text import both, either

NOT_KNOWN = -1


class VoterHost(NamedTuple):
    """A voter, as it was last seen and as it is now.

    ``log_end_offset`` is from the leader's last answer, ``metadata_offset`` is the offset that it reports to
    have loaded: both are lower bounds of its log end, NOT_KNOWN if there was no answer. ``why`` it does not
    answer. ``other`` is the directory id that its node was last seen with, where that is not the voter's: a
    new disk, or one that a rebuild replaced. ``stopped``: nothing listens at its address, so that no controller
    runs there. ``leads``: it names itself as the leader, which the brokers that were asked do not reach.
    """

    key: ReplicaKey
    address: str
    answers: bool
    why: str
    log_end_offset: int
    metadata_offset: int
    other: str = ""
    stopped: bool = False
    leads: bool = False

    @property
    def name(self) -> str:
        """Its node id, or its address where nobody has told the id."""
        return str(self.key.id) if self.key.id >= 0 else self.address

    @property
    def may_be_up(self) -> bool:
        """Whether it may be up, and lead, where this side of the network does not reach it."""
        return not self.answers and not self.stopped

    @property
    def votes(self) -> bool:
        """Whether it answers, and is not known to run with a disk that has no vote."""
        return self.answers and not self.other

    @property
    def offset(self) -> int:
        """The best lower bound for its log end."""
        return max(self.log_end_offset, self.metadata_offset)


@dataclass(frozen=True, slots=True)
class QuorumWithoutLeader:
    """The voters of a quorum without a leader. ``certain``: they are the set that was last seen committed; else
    they are the controllers that have registered, which need not be the voters of today.

    ``brokers``: the settings controller.quorum.bootstrap.servers of the brokers that told them, by "broker 1".
    ``answering``: the addresses where a controller answers. ``commits``: whether what ``leads`` has committed
    anything in its epoch; None: not known. ``replaced``: the voters that a rebuild replaced.
    ``known_brokers``: those that the cluster names, reached or not. ``only_named``: the hosts are the addresses
    that were given, and none of them told of any other. ``old_running``: those who run of voters that a rebuild
    replaced and that lead a quorum of their own, by node id. ``rebuilt_at``: when a rebuild made the only host the
    only voter, which nobody has seen lead since; ``plan_file``: its plan.
    """

    cluster_id: str
    hosts: tuple[VoterHost, ...]
    certain: bool
    recorded_at: str
    brokers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answering: frozenset[str] = frozenset()
    commits: bool | None = None
    replaced: tuple[ReplicaKey, ...] = ()
    known_brokers: tuple[int, ...] = ()
    only_named: bool = False
    old_running: tuple[int, ...] = ()
    rebuilt_at: str = ""
    plan_file: str = ""

    @property
    def majority(self) -> int:
        return len(self.hosts) // 2 + 1

    @property
    def up(self) -> tuple[VoterHost, ...]:
        return tuple(host for host in self.hosts if host.votes)

    @property
    def down(self) -> tuple[VoterHost, ...]:
        """Those that do not answer, or answer from another disk; the highest known log end first."""
        return tuple(sorted((h for h in self.hosts if not h.votes), key=lambda h: -h.offset))

    @property
    def down_first(self) -> tuple[VoterHost, ...]:
        """Every host, those that must come back first; else in their order."""
        return tuple(sorted(self.hosts, key=lambda host: host.votes))

    @property
    def missing(self) -> int:
        """How many of those must come back before anything can be committed."""
        return max(0, self.majority - len(self.up))

    @property
    def short(self) -> int:
        """The same, if every node that reports no metadata runs with a new disk."""
        return max(0, self.majority - (len(self.up) - len(self.without_metadata)))

    @property
    def proved(self) -> bool:
        """Whether nobody leads for certain: each that could be the leader was seen, or too few run to elect one."""
        if any(host.leads for host in self.hosts):
            return False
        if self._settings_only:
            return False
        if not any(host.may_be_up for host in self.hosts):
            return bool(self.hosts)
        return self.certain and sum(not host.stopped for host in self.hosts) < self.majority

    @property
    def leading(self) -> VoterHost | None:
        """Who says that it leads, where a majority is not known not to follow it; None: nobody does."""
        return None if self.commits is False else next((host for host in self.hosts if host.leads), None)

    @property
    def blind_brokers(self) -> tuple[str, ...]:
        """The brokers whose settings name only addresses where no controller answers, as "broker 1"."""
        return tuple(name for name, servers in self.brokers.items() if self.answering.isdisjoint(servers))

    @property
    def servers_wanted(self) -> str:
        """What controller.quorum.bootstrap.servers has to be there: the controllers that answer."""
        return ",".join(host.address for host in self.hosts if host.answers)

    @property
    def _settings_only(self) -> bool:
        """Whether the controllers are known from brokers' settings alone, and none of them runs: a controller that
        was added later is in none of these settings, and may lead.
        """
        nobody = not any(host.answers or host.may_be_up for host in self.hosts)
        return self.only_named or (not self.certain and nobody)

    @property
    def hosts_title(self) -> str:
        """What ``hosts`` are."""
        return (
            f"the only voter since the rebuild of {self.rebuilt_at}"
            if self.rebuilt_at
            else f"the only voter since a rebuild, as last seen {self.recorded_at}"
            if self.is_only_voter
            else f"voters as last seen {self.recorded_at}"
            if self.certain
            else f"controllers that {self._named_by}"
            if self._settings_only
            else "controllers that have registered"
        )

    @property
    def _named_by(self) -> str:
        return "were named" if self.only_named else "the brokers' settings name"

    @property
    def sentence(self) -> str:
        """What has to happen: :attr:`sentences` in one line, without the last full stop."""
        return _in_one_line(self.sentences)

    @property
    def of_old_voters(self) -> str:
        """:attr:`old_sentences` in one line, without the last full stop."""
        return _in_one_line(self.old_sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is seen, what it means, and what has to happen; without full stops."""
        return (*self.old_sentences, *self._own_sentences)

    @property
    def old_sentences(self) -> tuple[str, ...]:
        """That voters run which a rebuild replaced; nothing where none does."""
        if not self.old_running:
            return ()
        old = [str(node) for node in self.old_running]
        return (
            f"{controllers_text(old)} {'leads' if len(old) == 1 else 'lead'} a quorum of"
            f" {'its' if len(old) == 1 else 'their'} own, which a rebuild replaced: what brokers take from it is"
            " lost again",
            old_voters_stopped(old),
        )

    @property
    def _own_sentences(self) -> tuple[str, ...]:
        if not self.hosts:
            return (
                "nobody leads, and no controller is known from here: name one with --bootstrap-controller",
            )
        leading = next((host for host in self.hosts if host.leads), None)
        if leading is not None:
            return tuple(self._led_elsewhere(leading))
        if self.starts_only_voter:
            return (f"controller {self.hosts[0].name} is not reached", self.rebuilt, self.never_again)
        return tuple(self._majority_lost() if self.missing else self._enough_answer())

    @property
    def is_only_voter(self) -> bool:
        """Whether the one host is the only voter since a rebuild."""
        return len(self.hosts) == 1 and self.certain and bool(self.rebuilt_at or self.replaced)

    @property
    def starts_only_voter(self) -> bool:
        """Whether it is started before everything else: it has not led since the rebuild, or it is down."""
        return self.is_only_voter and self.missing > 0 and (bool(self.rebuilt_at) or self.proved)

    @property
    def rebuilt(self) -> str:
        """Who is started after a rebuild, without a full stop."""
        which = f"the rebuild of {self.rebuilt_at}" if self.rebuilt_at else "a rebuild"
        return f"Start controller {self.hosts[0].name} with its disk: {which} made it the only voter"

    @property
    def never_again(self) -> str:
        """Who is not started after a rebuild as it was, without a full stop."""
        names = old_voter_names(self.replaced, [host.key for host in self.hosts])
        return (
            f"Never start {either(names)} with the metadata {'log' if len(names) == 1 else 'logs'}"
            " that the rebuild replaced: what they lead is another quorum"
        )

    def _led_elsewhere(self, leading: VoterHost) -> Iterator[str]:
        """Why the leader that was seen is not the one that brokers reach, as far as their settings tell it."""
        if self.commits is False:
            yield f"controller {leading.name} says that it leads, and has committed nothing: no majority follows it"
            yield (
                "An election is under way, or the other voters do not reach it at the address that is registered"
                f" for it ({leading.address})"
            )
            return
        blind = self.blind_brokers
        if not blind:
            yield f"controller {leading.name} says that it leads"
            yield (
                "The brokers that answer are cut off from it, and what they tell was true once; or they follow"
                " another quorum"
            )
            yield from self.possible_rebuild
            return
        servers = sorted({server for name in blind for server in self.brokers[name]})
        yield (
            f"controller {leading.name} leads; {node_names(blind)} cannot find it, because"
            f" controller.quorum.bootstrap.servers there names only addresses where no controller answers"
            f" ({', '.join(servers)})"
        )
        doubt = self.may_be_rebuilt
        yield from self.possible_rebuild if doubt else ()
        yield (
            f"{'For that, set controller.quorum.bootstrap.servers' if doubt else 'Set it'} to"
            f" {self.servers_wanted} there and restart these brokers one by one (without a controller a broker may"
            " not end on SIGTERM), or start a controller with its disk at one of those addresses"
        )
        if strangers := self.strangers:
            yield (
                f"First be sure that no voter which a rebuild on another host made, not seen from here, belongs at"
                f" {either(strangers)}: then that one is started, and the setting stays"
            )
        yield from () if doubt else self.possible_rebuild

    @property
    def strangers(self) -> tuple[str, ...]:
        """The addresses in brokers' settings that are of none of the hosts."""
        known = {host.address for host in self.hosts}
        named = {server for name in self.blind_brokers for server in self.brokers[name]}
        return tuple(sorted(named - known))

    @property
    def may_be_rebuilt(self) -> bool:
        """Whether a voter that is not up may be the only one of a quorum that was rebuilt, not seen from here."""
        return not self.replaced and any(not host.votes for host in self.hosts)

    @property
    def possible_rebuild(self) -> tuple[str, ...]:
        """What may be, where brokers do not reach who leads: that it must not lead. Without full stops. Nothing
        where a rebuild is known.
        """
        if self.replaced:
            return ()
        away = [host.name for host in self.hosts if not host.votes]
        blind = [int(name.rpartition(" ")[2]) for name in self.brokers]
        leader = next((host.name for host in self.hosts if host.leads), "")
        if not away or not leader:
            return (*((only_voter_warning(away),) if away else ()), rebuild_evidence(blind))
        disks = "its disk" if len(away) == 1 else "their disks"
        return (
            only_voter_warning(away),
            rebuild_evidence(blind),
            f"{stop_if_rebuilt(leader, [host.name for host in self.up])}, then start {both(away)} with {disks}; if"
            f" not, let the brokers find controller {leader}",
        )

    def _majority_lost(self) -> Iterator[str]:
        down = ", ".join(
            f"{host.key.id} ({host.address})" if host.key.id >= 0 else host.address for host in self.down
        )
        lost = "a majority is lost" if self.proved else "no leader can be reached"
        stuck = nothing = "no change can be committed, a change of the voters neither"
        if self.proved:
            stuck = f"{stuck[0].upper()}{stuck[1:]}"
        else:
            # A leader may be on the other side of a cut.
            which = ", ".join(host.name for host in self.hosts if host.may_be_up)
            well = f"If {which} run, the quorum may be well, and the brokers that answer cut off from it"
            stuck = f"{well}: look there first. If they do not, {stuck}"
        if self.certain:
            needed = f"{self.majority} {'is' if self.majority == 1 else 'are'} needed"
            yield f"{lost}: {len(self.up)} of {len(self.hosts)} voters answer and {needed}"
            yield stuck
            which = "all of" if self.missing == len(self.down) else f"{self.missing} of"
            yield f"Bring back {which}: {down}"
        elif self._settings_only:
            answers = f"{len(self.up)} of" if self.up else "none of"
            verb = "answers" if len(self.up) < 2 else "answer"
            yield f"{lost}: {answers} the {len(self.hosts)} controllers that {self._named_by} {verb}"
            others = (
                "Others may lead"
                if self.only_named
                else ("Controllers that were added later are not in these settings, and may lead")
            )
            yield f"{others}: name them with --bootstrap-controller before anything else"
            yield f"If none leads, {nothing}"
            yield f"Then bring back as many as it takes: {down}"
        else:
            yield f"{lost}: {len(self.up)} of the {len(self.hosts)} controllers that have registered answer"
            yield "Which of them are voters is not known from here: one that was removed stays registered"
            yield stuck
            yield f"Bring back as many as it takes, at most {self.at_most} of: {down}"
        if empty := self.without_metadata:
            yield self._no_metadata
            yield f"With a new disk it does not count, and {len(empty)} more must come back"

    @property
    def at_most(self) -> int:
        """How many must come back in the worst case: the nodes that answer may not be voters at all."""
        down = len(self.down)
        return min(down, max(self.missing, down // 2 + 1))

    @property
    def _no_metadata(self) -> str:
        which = ", ".join(host.name for host in self.without_metadata)
        return f"{which} reports no metadata: it started after the leader was lost, or its disk is new"

    @property
    def without_metadata(self) -> tuple[VoterHost, ...]:
        """Nodes that answer without a metadata offset while another reports one: a new disk, or a restart
        since then.
        """
        if not any(host.metadata_offset > NOT_KNOWN for host in self.hosts):
            return ()
        return tuple(host for host in self.up if host.metadata_offset <= NOT_KNOWN)

    def _enough_answer(self) -> Iterator[str]:
        yield f"{len(self.up)} of {len(self.hosts)} controllers answer and nobody leads"
        yield (
            "An election is under way, they cannot reach each other, or one of them has a new disk and is no voter"
            " any more"
        )
        empty, left = self.without_metadata, len(self.up) - len(self.without_metadata)
        if empty and left < self.majority:
            yield self._no_metadata
            yield f"With a new disk, {left} of {len(self.hosts)} voters answer and {self.majority} are needed"
        against = "the directory id below" if self.certain else "that of the voters, if it was noted"
        yield f"Compare directory.id in meta.properties of its metadata log dir with {against}"
        if self.down:
            disks = "the disk that it had" if len(self.down) == 1 else "the disks that they had"
            yield f"Bring {both([host.name for host in self.down])} back with {disks}"


def _in_one_line(sentences: tuple[str, ...]) -> str:
    first, *rest = sentences or ("",)
    return ". ".join((first, *(f"{one[0].upper()}{one[1:]}" for one in rest)))
