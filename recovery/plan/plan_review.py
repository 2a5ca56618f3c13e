"""A plan as a person reviews it: counts, the worst rows, and what there is to know of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import NamedTuple

from recovery.acknowledged.verdict import Condition, ConditionKind, Verdict, VerdictValue
from recovery.loss import Loss
from recovery.model import NO_LEADER, Standing
from recovery.plan.topic_marks import Mark
from recovery.plan.values import NotElected, Plan, PlanCandidate, PlanRow, Successor
from recovery.strategy import DecisionKind
from recovery.wording.loss_text import brief_harm, harm_text, range_text
from recovery.wording.offline_text import offline_text
from recovery.wording.quantity_text import both, counted
from recovery.wording.verdict_text import verdict_text


class AcknowledgedLoss(NamedTuple):
    """How many of ``rows`` have which value of the verdict on their leader; those with SOME lose ``at_least``
    committed offsets in all (``exact``: and no others). Rows that nobody judged are not counted. ``hosts``: brokers
    whose hosts have to have kept power, where nothing else is in doubt; ``unchecked``: that alone is not enough.
    """

    values: Mapping[VerdictValue, int]
    at_least: int
    exact: bool = False
    hosts: tuple[int, ...] = ()
    unchecked: bool = False
    rows: int = 0

    def of(self, value: VerdictValue) -> int:
        return self.values.get(value, 0)

    def is_none(self, rows: int) -> bool:
        """Whether it is proved for each of ``rows`` that no acknowledged record is lost."""
        return self.of(VerdictValue.NONE) == rows

    def parts(self) -> Iterator[tuple[VerdictValue, str]]:
        """Each value that occurs, the worst first, in words, and of how many partitions; of one alone there is
        nothing to count.
        """
        for value in _WORST_FIRST:
            if count := self.of(value):
                of = f": {counted(count, 'partition')}" if self.rows > 1 else ""
                yield value, f"{self._words(value)}{of}"

    def _words(self, value: VerdictValue) -> str:
        """What such elections lose."""
        match value:
            case VerdictValue.SOME:
                return f"{self.at_least:,}{'' if self.exact else ' or more'} committed"
            case VerdictValue.OPEN:
                return "not known"
            case VerdictValue.IN_DOUBT if self.hosts:
                hosts = "the host of broker" if len(self.hosts) == 1 else "the hosts of brokers"
                known = " as far as is known," if self.unchecked else ""
                return f"none{known} if {hosts} {both(self.hosts)} kept power"
            case VerdictValue.IN_DOUBT:
                return "perhaps none, but there are signs against that"
            case VerdictValue.UNCHECKED:
                return "none as far as is known, not fully checked"
            case VerdictValue.NONE:
                return "none"

    def __str__(self) -> str:
        """Such as ``500 or more committed: 1 partition; not known: 2 partitions``; "" where unjudged."""
        return "; ".join(text for _, text in self.parts())


_WORST_FIRST = (
    VerdictValue.SOME,
    VerdictValue.OPEN,
    VerdictValue.IN_DOUBT,
    VerdictValue.UNCHECKED,
    VerdictValue.NONE,
)


@dataclass(frozen=True, slots=True)
class Summary:
    """A plan in counts of partitions, and its loss in offsets.

    ``may_lose`` is every row of which it is not certain that nothing is lost, by the logs that answered or by its
    verdict: the number that is typed to confirm. ``unknown`` of them have no known upper bound; then ``at_most`` is
    None. ``disagree`` counts rows whose leader is not whom the other ranking would choose, and ``not_best`` those
    where a candidate that can be elected ranks before the designated one, as somebody's edit may have it.
    ``acknowledged``: the verdicts on the designated leaders.
    """

    topics: int
    elect: int
    not_elected: Mapping[DecisionKind, int]
    lossless: int
    may_lose: int
    unknown: int
    at_least: int
    at_most: int | None
    disagree: int
    not_best: int
    acknowledged: AcknowledgedLoss

    @property
    def loss(self) -> str:
        """The loss of the whole plan in words."""
        return range_text(self.at_least, self.at_most)

    @property
    def passed_over(self) -> str:
        """That not the best is elected everywhere; "" where it is."""
        if not self.not_best:
            return ""
        return f"{self.not_best:,} of {self.elect:,} elect another leader than the best by ranking"

    @property
    def unacknowledged(self) -> str:
        """What ``may_lose`` is about where the verdicts say that no acknowledged record is lost; else ""."""
        return "records that were never acknowledged" if self.acknowledged.is_none(self.elect) else ""


def offline_for(plan: Plan) -> str:
    """For how long the plan's partitions had been offline when it was made: it may be read much later. "" where the
    metadata log has none of them.
    """
    rows: list[PlanRow | NotElected] = [*plan.rows]
    rows += (row for row in plan.not_elected if row.leader == NO_LEADER)
    since = {row.tp: row.offline_since_ms / 1000 for row in rows if row.offline_since_ms is not None}
    already = {row.tp: row.offline_already_ms / 1000 for row in rows if row.offline_already_ms is not None}
    made = plan.header.made_at.timestamp()
    return offline_text(since, already, len(rows), made, " when the plan was made")


def summarise(plan: Plan) -> Summary:
    """The plan in counts."""
    losses = [row.loss for row in plan.rows]
    lossless = sum(row.lossless for row in plan.rows)
    unknown = sum(loss.at_most is None for loss in losses)
    return Summary(
        len({row.tp.topic for row in plan.rows}),
        len(plan.rows),
        Counter(row.verdict for row in plan.not_elected),
        lossless,
        len(losses) - lossless,
        unknown,
        sum(loss.at_least for loss in losses),
        None if unknown else sum(loss.at_most or 0 for loss in losses),
        sum(row.other_ranking_leader is not None for row in plan.rows),
        sum(map(passes_over, plan.rows)),
        acknowledged_loss(row.chosen.verdict for row in plan.rows),
    )


def acknowledged_loss(judged: Iterable[Verdict | None]) -> AcknowledgedLoss:
    """The verdicts on several elections, counted; None: nobody judged."""
    rows = list(judged)
    verdicts = [verdict for verdict in rows if verdict is not None]
    in_doubt = {
        one for verdict in verdicts if verdict.value is VerdictValue.IN_DOUBT for one in verdict.conditions
    }
    return AcknowledgedLoss(
        Counter(verdict.value for verdict in verdicts),
        sum(verdict.at_least for verdict in verdicts),
        all(verdict.exact for verdict in verdicts if verdict.value is VerdictValue.SOME),
        _hosts_in_doubt(one for one in in_doubt if one.doubtful),
        not all(one.doubtful for one in in_doubt),
        len(rows),
    )


def _hosts_in_doubt(conditions: Iterable[Condition]) -> tuple[int, ...]:
    """Whose hosts have to have kept power for these doubtful conditions; empty where another one is among them, or
    where it is not known of whom it has to hold.
    """
    doubtful = list(conditions)
    if any(one.kind is not ConditionKind.RECORDS_KEPT or one.tolerated for one in doubtful):
        return ()
    return tuple(sorted({broker for one in doubtful for broker in one.brokers}))


def passes_over(row: PlanRow) -> bool:
    """Whether a better log could be elected; an equal one further up in the assignment is none."""
    best = next((c for c in row.candidates if c.standing is Standing.ELECTABLE), row.chosen)
    return (best.last_epoch, best.log_end) != (row.chosen.last_epoch, row.chosen.log_end)


def worst(plan: Plan, count: int) -> tuple[PlanRow, ...]:
    """The rows that may lose something: internal topics first, then the worst: the certain before the doubtful."""
    losing = [row for row in plan.rows if not row.lossless]
    return tuple(nlargest(count, losing, key=lambda row: (Mark.INTERNAL in row.marks, *_weight(row.loss))))


def _weight(loss: Loss) -> tuple[int, bool, int]:
    return loss.at_least, loss.at_most is None, loss.at_most or 0


def candidate_harm(candidate: PlanCandidate) -> str:
    """What electing this candidate destroys."""
    return harm_text(candidate.loss, candidate.last_epoch)


def brief_candidate_harm(candidate: PlanCandidate) -> str:
    """The same, in the few words of a warning."""
    return brief_harm(candidate.loss, candidate.last_epoch)


def successor_harm(row: PlanRow, successor: Successor) -> str:
    """What is destroyed when this one is elected instead of the chosen leader, in the few words of a warning."""
    known = row.candidate(successor.broker)
    return brief_harm(successor.loss, None if known is None else known.last_epoch)


def fixed_order_text(row: PlanRow) -> str:
    """Why the order of the replicas stays as it is; only where it does."""
    missing = next(broker for broker, s in row.standings.items() if s is Standing.UNREGISTERED)
    return f"the order of the replicas cannot be changed: broker {missing} is not registered"


def row_note(row: PlanRow) -> str:
    """Why the row elects its leader, and what a person has to know of that choice."""
    notes = [row.reason]
    if row.chosen.verdict is not None:
        notes.append(verdict_text(row.chosen.verdict))
    if row.other_ranking_leader is not None:
        notes.append(_other_choice(row, row.other_ranking_leader))
    if row.order_is_fixed:
        notes.append(_fixed_order(row))
    if row.silent:
        notes.append(f"no answer from {', '.join(map(str, row.silent))}")
    return "; ".join(notes)


def _fixed_order(row: PlanRow) -> str:
    """Names who stands before the chosen leader: it is elected instead, at once or as soon as it is back."""
    notes = [fixed_order_text(row)]
    place = row.replicas.index(row.leader)
    for broker, _, standing in row.successors:
        if row.replicas.index(broker) > place:
            continue
        if standing is Standing.ELECTABLE:
            notes.append(
                f"an unclean election elects broker {broker}, which stands first, and not {row.leader}"
            )
        else:
            first = f"broker {broker} stands first ({standing} now)"
            notes.append(f"{first} and is elected instead of {row.leader} if it is back by then")
    return "; ".join(notes)


def _other_choice(row: PlanRow, leader: int) -> str:
    other = row.candidate(leader)
    text = f"the other ranking would choose {leader}"
    return text if other is None else f"{text}, and lose {candidate_harm(other)}"
