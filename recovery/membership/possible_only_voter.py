"""Whether a voter that is down may be replaced, removed or emptied: one rule for commands, panes and advice.

A rebuild on another host, which nobody here has seen, may have made such a voter the only one. Brokers that
followed the rebuilt quorum never follow old voters, whose epoch is lower: where every broker follows the voters
that lead, nothing was rebuilt. What was not asked is not known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recovery.membership.controllers_asked import controllers_text, node_names
from recovery.membership.quorum_health import NO_BROKER_ASKED, KnownBrokers, MemberRole, QuorumHealth
from recovery.wording.quantity_text import either

NOT_REBUILT = "--not-rebuilt"
"""The option that says that somebody has looked."""


LEAD_NO_BROKER = (
    "Lead no broker to that controller before this is known, and restart none: if a rebuild on another host made"
    " another voter the only one, it must not lead."
)
"""Of a controller that says that it leads, and that brokers do not reach."""


def rebuild_evidence(brokers: Collection[int] = ()) -> str:
    """How it is seen whether the quorum was rebuilt, without full stop: a broker that has followed a rebuilt quorum
    has the rebuild in its metadata log, and one that follows the others has not. No ``brokers``: any may be it.
    """
    hosts = "host" if len(brokers) == 1 else "hosts"
    whose = _names(brokers) if brokers else "all brokers"
    return f"On the {hosts} of {whose} ktriage quorum evidence LOG_DIR says whether the quorum was rebuilt"


def only_voter_warning(nodes: Sequence[str]) -> str:
    """Why voters that are not reached are neither replaced nor emptied, where brokers are not seen to follow the
    others; without full stop. Whoever has not seen the rebuilt quorum cannot know of it.
    """
    which = "it" if len(nodes) == 1 else "one of them"
    return (
        f"Do not replace, format or wipe {either(nodes)}: a rebuild on another host, not seen from here, may have"
        f" made {which} the only voter"
    )


def stop_if_rebuilt(leader: str, voters: Sequence[str]) -> str:
    """When the ``voters`` that run are stopped, without full stop. A quorum that was rebuilt itself has the rebuild
    in its own log, as the brokers have: its voters are the ones that must run.
    """
    return (
        f"Only if a broker's log holds a rebuild that the log of controller {leader} does not hold (ktriage quorum"
        f" evidence with both), stop {controllers_text(voters)}"
    )


@dataclass(frozen=True, slots=True)
class BrokersFollowing:
    """The quorum that a leader describes, beside the brokers that are known. A broker of the leader's own list that
    does not fetch any more counts as silent.
    """

    found: QuorumHealth
    brokers: KnownBrokers = NO_BROKER_ASKED

    @property
    def following(self) -> frozenset[int]:
        """The brokers that fetch from the leader. The broker of a combined node fetches as its voter."""
        listed = (member.key.id for member in self.found.members if member.role is MemberRole.BROKER)
        return self.found.running.intersection((*listed, *self.brokers.answering, *self.brokers.silent))

    @property
    def elsewhere(self) -> frozenset[int]:
        """Brokers that answer and do not follow this quorum, be it that they follow another one."""
        return self.brokers.answering - self.following

    @property
    def away(self) -> frozenset[int]:
        """All that are not seen to follow."""
        listed = {member.key.id for member in self.found.dead_brokers}
        return (self.brokers.answering | self.brokers.silent | listed) - self.following

    @property
    def names_away(self) -> str:
        """``brokers 1 and 2``: those that are not seen to follow."""
        return _names(self.away)

    @property
    def nobody_follows(self) -> bool:
        """Whether brokers are known, and none of them follows."""
        return bool(self.away) and not self.following

    @property
    def possible_only_voters(self) -> tuple[int, ...]:
        """The voters that are down and are neither replaced nor emptied. A voter whose node runs with a new disk is
        not down.
        """
        down = {member.key.id for member in self.found.dead_voters}.difference(self.found.new_disks)
        return tuple(sorted(node for node in down if self._is_possible(node)))

    def _is_possible(self, voter: int) -> bool:
        """The broker of a combined node is down with its voter, and says nothing about it. Where this quorum was
        itself rebuilt, and a broker follows it, the others lack no more than its address.
        """
        if self.found.quorum.rebuilt_epoch is not None and self.following - {voter}:
            return False
        return not self.brokers.asked or bool(self.away - {voter}) or not self.following - {voter}

    @property
    def evidence_first(self) -> bool:
        """Whether the brokers speak for another quorum, so that a voter is not even started before somebody has
        looked: one answers and does not follow, or none follows.
        """
        return bool(self.elsewhere) or not self.following

    @property
    def reason(self) -> str:
        """Why a voter may be the only one, without full stop."""
        if not self.brokers.asked:
            return "no broker was asked: whether they follow these voters is not known"
        leader = self.found.quorum.leader.id
        if not self.following:
            return f"no broker follows controller {leader}"
        verb = "is" if len(self.away) == 1 else "are"
        return f"{_names(self.away)} {verb} not seen to follow controller {leader}"

    @property
    def evidence(self) -> str:
        """Where it is looked for a rebuild, without full stop: never where brokers follow these voters."""
        known = self.found.quorum.rebuilt_epoch
        again = "" if known is None else f" after epoch {known:,}"
        return f"{rebuild_evidence(self.elsewhere or self.away)}{again}"

    @property
    def stop_leading(self) -> str:
        """:func:`stop_if_rebuilt` of the voters that run."""
        voters = {key.id for key in self.found.quorum.voters.keys} & self.found.running
        return stop_if_rebuilt(str(self.found.quorum.leader.id), [str(node) for node in sorted(voters)])

    def refusal(self, leaving: Collection[int], *, not_rebuilt: bool = False) -> str:
        """Why a voter that is down is neither replaced nor removed, and how the way is cleared; "" if it may be.
        ``not_rebuilt``: somebody has looked that nobody has rebuilt the quorum. Brokers that answer and do not
        follow speak against that, and so do all that are registered where none of them follows.
        """
        unsafe = [node for node in self.possible_only_voters if node in leaving]
        if not unsafe or (not_rebuilt and not self._speaks_against(unsafe)):
            return ""
        never = [node for node in unsafe if self._never_fetched(node)]
        leader = self.found.quorum.leader.id
        mark = f", and {either(never)} has never fetched from controller {leader}" if never else ""
        return f"{only_voter_warning(list(map(str, unsafe)))}: {self.reason}{mark}. {self._way()}"

    def _speaks_against(self, unsafe: Collection[int]) -> bool:
        """Whether brokers do, in spite of whoever has looked."""
        return bool(
            self.elsewhere.difference(unsafe) or (self.nobody_follows and self.away.difference(unsafe))
        )

    def _never_fetched(self, node: int) -> bool:
        return any(m.key.id == node and m.fetch_ms is None for m in self.found.dead_voters)

    def _way(self) -> str:
        leader = self.found.quorum.leader.id
        looked = f"where somebody has looked that nobody has rebuilt the quorum, give {NOT_REBUILT}"
        if self.nobody_follows:
            first = self.names_away if len(self.away) == 1 else f"one of {self.names_away}"
            return (
                f"{self.evidence}. If it was not, let {first} follow controller {leader} first: nothing else shows"
                " that this quorum is the cluster's"
            )
        if not self.brokers.asked:
            return f"Ask the brokers: the same with --bootstrap-server. Or, {looked}"
        them = _names(self.elsewhere or self.away) if self.away else "a broker"
        if self.elsewhere:
            return f"{self.evidence}. If it was not, let {them} follow first: mend the way to controller {leader}"
        return f"{self.evidence}. If it was not, start {them} first; or, {looked}"


def _names(brokers: Collection[int]) -> str:
    return node_names([f"broker {broker}" for broker in sorted(brokers)])
