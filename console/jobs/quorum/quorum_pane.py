"""Pane 4: the metadata quorum."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from console.jobs.quorum.quorum_report import MEMBERS, host_fields, sentences
from recovery.membership.after_rebuild import AfterRebuild, adding_refusal
from recovery.membership.controllers_asked import RememberedQuorum
from recovery.membership.possible_only_voter import BrokersFollowing
from recovery.membership.preflight import (
    EndpointProbe,
    LivenessLimits,
    NodeIdentity,
    PreflightResult,
    before_adding,
    before_removing,
)
from recovery.membership.quorum import MembershipRules, Quorum
from recovery.membership.quorum_health import (
    NO_BROKER_ASKED,
    KnownBrokers,
    MemberRole,
    MemberState,
    QuorumHealth,
    QuorumMember,
    committing,
)
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.model import Unknown
from recovery.wording.advice_text import AdviceText
from recovery.wording.cluster_advice import old_voters_advice
from recovery.wording.lost_quorum_text import action, asked_text, leader_state, warnings
from recovery.wording.quantity_text import counted, offset, printable
from widgets.base_pane import TablePane
from widgets.table import RowTable
from widgets.text import Line, Piece, Tone, fold, line


class VoterChangePreview(NamedTuple):
    """A change of the voters: what it is, whether it is possible, and why not, or what it would lead to."""

    name: str
    possible: bool
    why: str


class QuorumPane(TablePane):
    """Voters and observers; the table's keys are (node id, directory id)."""

    DEFAULT_CSS = """
    QuorumPane .details { max-height: 50%; }
    """

    NAME = "quorum"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown: QuorumHealth | QuorumWithoutLeader | Unknown | None = None
        self._rebuilt: AfterRebuild | None = None
        self._next_step = ""
        self._earlier: RememberedQuorum | None = None
        self._brokers = NO_BROKER_ASKED

    def make_table(self) -> RowTable[Any]:
        return RowTable(MEMBERS, _key, noun="member", empty="the quorum is not described")

    def update(
        self,
        shown: QuorumHealth | QuorumWithoutLeader | Unknown | None,
        rebuilt: AfterRebuild | None = None,
        next_step: str = "",
        earlier: RememberedQuorum | None = None,
        *,
        brokers: KnownBrokers = NO_BROKER_ASKED,
    ) -> None:
        """Shows the quorum; Unknown: why it cannot be described; None: it was not asked yet. ``rebuilt``: where it
        stands after a rebuild, and ``next_step`` what comes next then. ``earlier``: the quorum as it was
        remembered. ``brokers``: those that are known.
        """
        self._brokers = brokers
        self._shown, self._rebuilt, self._next_step, self._earlier = shown, rebuilt, next_step, earlier
        if isinstance(shown, QuorumWithoutLeader):
            self.table.update(shown.down_first, host_fields(shown))
        else:
            self.table.update(shown.silent_first if isinstance(shown, QuorumHealth) else (), MEMBERS)
        self.show_lines()

    def summary_lines(self, width: int) -> list[Line]:
        return [one for pieces in self._summary() for one in fold(line("  ", *pieces), width, "  ")]

    def _summary(self) -> Iterator[tuple[Piece, ...]]:
        match self._shown:
            case None:
                yield (Piece("not asked yet", Tone.DIM),)
            case Unknown() as why:
                yield (Piece(f"quorum: {printable(str(why))}", Tone.WARN),)
            case QuorumWithoutLeader() as lost:
                state = leader_state(lost)
                if not action(lost):
                    yield (Piece(state, Tone.BAD),)
                    yield (Piece(printable(lost.sentence), Tone.BAD),)
                else:
                    yield (
                        Piece(f"{state}. ", Tone.BAD),
                        Piece(printable(action(lost)), Tone.STRONG),
                    )
                    yield from ((Piece(one, Tone.WARN),) for one in warnings(lost))
                    yield (Piece(f"{printable(asked_text(lost))}; {lost.majority} needed"),)
                    yield (Piece("M", Tone.KEY), Piece(" the ways back, the least harm first"))
                if lost.hosts:
                    yield (Piece(f"below: {printable(lost.hosts_title)}", Tone.DIM),)
            case QuorumHealth(quorum=quorum) as found:
                mark = quorum.high_watermark
                known = "nothing committed" if mark is None else offset(mark)
                rest = f" (epoch {quorum.leader_epoch}) · high watermark {known}"
                yield Piece(f"led by {quorum.leader.id}", Tone.STRONG), Piece(rest)
                if self._rebuilt is not None:
                    wrong = self._rebuilt.alarms
                    more = f" ({counted(len(wrong) - 1, 'more finding')}: M)" if len(wrong) > 1 else ""
                    yield from ((Piece(printable(text), Tone.BAD), Piece(more)) for text in wrong[:1])
                    yield (Piece(printable(self._next_step), Tone.STRONG), Piece(" (M: all steps)"))
                old = self._of_old_voters(found)
                if old is not None:
                    yield (
                        Piece(printable(old.action), Tone.BAD),
                        Piece(f" {' '.join(old.warnings)}", Tone.WARN),
                    )
                    yield from ((Piece(printable(reason)),) for reason in old.reasons)
                guided = bool(found.dead_voters)  # M replaces each of them, step by step
                replaced = () if self._rebuilt is None else [voter.key for voter in self._rebuilt.log.gone]
                for tone, text in sentences(
                    found, replaced=replaced, advised=old is None, brokers=self._brokers
                ):
                    key = (Piece(" [M]", Tone.KEY),) if guided and tone is Tone.STRONG else ()
                    yield (Piece(printable(text), tone), *key)
                if found.strength.commits and not committing(quorum):
                    again = "press r to see whether it commits now"
                    yield (Piece(f"a majority was not caught up at the last reading: {again}", Tone.WARN),)

    def _of_old_voters(self, found: QuorumHealth) -> AdviceText | None:
        return None if self._earlier is None else old_voters_advice(found, self._earlier)

    def detail_lines(self, width: int) -> list[Line]:
        member, found = self.table.cursor_row, self._shown
        who = f"{member.role} {member.key.id}" if isinstance(member, QuorumMember) else ""
        lines = self.left_out(width, who)
        if isinstance(found, QuorumWithoutLeader) and isinstance(member, VoterHost):
            state, why = (one.cell(member) for one in host_fields(found) if one.id in ("answers", "why"))
            if why:
                lines += fold(line(Piece(f"{state}: ", Tone.WARN), Piece(why)), width, "  ")
        if not isinstance(found, QuorumHealth) or self._of_old_voters(found) is not None:
            return lines
        # Whoever reads "possible" in a tone of good news at night takes it for advice.
        lines.append(
            line(
                Piece("CHANGES OF THE VOTERS", Tone.HEAD),
                Piece("  what would be accepted, no advice", Tone.DIM),
            )
        )
        for change in voter_changes(
            found, None if self._rebuilt is None else self._rebuilt.log, self._brokers
        ):
            sign = Piece("possible      ") if change.possible else Piece("not possible  ", Tone.WARN)
            why = f": {printable(change.why)}" if change.why else ""
            lines += fold(line(sign, Piece(change.name, Tone.STRONG), Piece(why)), width, " " * 14)
        return lines


def _key(row: QuorumMember | VoterHost) -> Hashable:
    if isinstance(row, VoterHost) and row.key.id < 0:
        return row.key.id, row.address  # several may be known only by their addresses
    return tuple(row.key)


def voter_changes(
    found: QuorumHealth, rebuilt: RebuiltLog | None = None, brokers: KnownBrokers = NO_BROKER_ASKED
) -> Iterator[VoterChangePreview]:
    """Each voter's removal as judged by the rules, and the observers that could be added."""
    following = BrokersFollowing(found, brokers)
    for key in found.quorum.voters.keys:
        verdict = before_removing(found.quorum, key, LivenessLimits())
        only = verdict.allowed and key.id in following.possible_only_voters
        why = f"it may be the only voter: {following.reason}" if only else _why(verdict)
        yield VoterChangePreview(f"remove voter {key.id}", verdict.allowed and not only, why)
    for member in found.members:
        if member.role is not MemberRole.CONTROLLER:
            continue
        gone = member.state is MemberState.GHOST
        verdict = _adding(found.quorum, member.key)
        old = adding_refusal(member.key, rebuilt)
        yield VoterChangePreview(
            f"add observer {member.key.id}",
            not gone and not old and verdict.allowed,
            "it does not fetch any more" if gone and found.dynamic else old or _why(verdict),
        )


def _why(verdict: PreflightResult) -> str:
    return "; ".join(verdict.refused or verdict.warnings) or f"then: {verdict.after}"


def _adding(quorum: Quorum, key: ReplicaKey) -> PreflightResult:
    """The preflight without contacting the node; the node is contacted before anything is sent."""
    itself = VoterEndpoint(quorum.default_listener, "", 0)
    answer = EndpointProbe(itself, NodeIdentity(quorum.cluster_id, key.id, (0, quorum.kraft_version)))
    return before_adding(quorum, Voter(key, (itself,)), [answer], MembershipRules(), LivenessLimits())
