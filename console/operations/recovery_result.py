"""Recovery in one go (unclean-recovery-tool, ``kafka-unclean-recovery``): look, choose, elect, look again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from console.operations.election_batches import Elected, Result
from console.operations.leader_choice import Choices
from recovery.model import TopicPartition
from recovery.plan.values import NotElected
from recovery.strategy import DecisionKind


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was chosen and what came of it; ``elected`` is None where nothing was to be sent."""

    choices: Choices
    elected: Elected | None

    @property
    def left_over(self) -> tuple[NotElected, ...]:
        """Partitions of the input that stay without a leader because nobody was chosen."""
        return tuple(
            row for row in self.choices.plan.not_elected if row.verdict is not DecisionKind.ALREADY_ONLINE
        )

    @property
    def failures(self) -> tuple[tuple[TopicPartition, str], ...]:
        """Every partition that was not recovered, with the reason in one line."""
        left = tuple((row.tp, f"{row.verdict}: {row.reason}") for row in self.left_over)
        failed = self.elected.failures if self.elected is not None else ()
        return (*left, *((result.row.tp, failure_text(result)) for result in failed))

    @property
    def counts(self) -> Mapping[str, int]:
        """How many partitions ended how, those for which nothing was sent too."""
        found = Counter(str(row.verdict) for row in self.choices.plan.not_elected)
        elected = self.elected.counts if self.elected is not None else {}
        found.update({str(outcome): count for outcome, count in elected.items()})
        return found


def failure_text(result: Result) -> str:
    """Why this row is not a success, in one line."""
    election, state = result.election, result.state
    parts = [f"{election.outcome}"]
    if election.leader >= 0:
        parts.append(f"led by {election.leader}")
    if election.detail:
        parts.append(election.detail)
    if result.lost_offsets and state is not None:
        parts.append(f"{state.gap} offsets below the fenced log end were overwritten")
    if not election.restored:
        parts.append("its assignment order is not restored: run ktriage resume")
    return "; ".join(parts)
