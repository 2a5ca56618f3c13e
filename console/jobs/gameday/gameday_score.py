"""What came of a game day: what the team did beside what could have been done, in the same simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.loop import MILLISECOND
from backends.simulator.rehearsal import recover
from backends.simulator.scenario.build import Scenario
from console.output.json_document import document
from console.output.report_blocks import ReportBlock, ReportHeading, ReportList, ReportText, report_table
from recovery.metadata_log.outages import outages
from recovery.metadata_log.timeline import MetadataTimeline
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from recovery.wording.quantity_text import counted, exact_age
from widgets.fields import Field, data_field, json_of


class Play(NamedTuple):
    """What was done, in a few words, and what came of it. ``offline`` partitions had no leader when the operator
    came; of these ``led`` have one, the last since ``seconds`` after the operator came. ``lost``: records that were
    acknowledged with acks=all and that no leader has. ``written_back``: rescued records that were written back.
    """

    by: str
    offline: int
    led: int
    seconds: float
    lost: int
    written_back: int = 0

    @property
    def gone(self) -> int:
        """Records that are lost for good."""
        return max(0, self.lost - self.written_back)

    def is_better_than(self, other: Play) -> bool:
        """Whether it is worse in nothing and better in something: partitions led, records gone, and time beyond
        :data:`SLOW`.
        """
        if self.led < other.led or self.gone > other.gone:
            return False
        return self.led > other.led or self.gone < other.gone or self.seconds + SLOW < other.seconds


SLOW = 60.0
"""Seconds of looking that nobody is reproached with."""
OTHERS: Mapping[str, Strategy | None] = {
    "elect the best that answers, at once (aggressive)": Strategy.AGGRESSIVE,
    "elect only where nothing acknowledged is lost (balanced)": Strategy.BALANCED,
    "do nothing, and wait": None,
}


def _after(play: Play) -> str:
    return exact_age(play.seconds) if play.led else "-"


PLAY: tuple[Field[Play], ...] = (
    Field("by", "WHO", lambda play: play.by, below=True),
    Field(
        "led",
        "LED AGAIN",
        lambda play: play.led,
        lambda play: f"{play.led:,} of {play.offline:,}",
        right=True,
    ),
    data_field("offline", lambda play: play.offline),
    Field("seconds", "AFTER", lambda play: round(play.seconds, 1), _after, right=True),
    Field("lost", "CUT OFF", lambda play: play.lost, right=True),
    Field("writtenBack", "WRITTEN BACK", lambda play: play.written_back, right=True),
    Field("gone", "GONE", lambda play: play.gone, right=True),
)


async def play_of(backend: SimulatorBackend, by: str, operator_at: int, written_back: int = 0) -> Play:
    """What the simulation of an open backend shows now; ``operator_at`` in virtual µs. Raises BackendError."""
    membership = backend.membership
    await membership.open()
    log = await membership.metadata_log()
    await log.read()
    came_ms = operator_at // MILLISECOND
    began = [
        one
        for one in outages(MetadataTimeline(log.history).events())
        if one.since_ms <= came_ms and (one.until_ms is None or one.until_ms > came_ms)
    ]
    ended = [one.until_ms for one in began if one.until_ms is not None]
    lost = sum(row.records for row in backend.simulation.checker.lost_now())
    seconds = (max(ended) - came_ms) / 1000 if ended else 0.0
    return Play(by, len(began), len(ended), seconds, lost, written_back)


async def other_plays(scenario: Scenario, seed: int, until: int) -> list[Play]:
    """What other ways would have come to by ``until`` (virtual µs)."""
    plays = []
    for by, strategy in OTHERS.items():
        backend = SimulatorBackend(scenario, seed)
        try:
            simulation = backend.load(scenario.operator_at)
            if strategy is not None:
                await recover(backend, strategy, Ranking.LAST_RECORD, {}, {})
            simulation.advance_to(max(until, simulation.now))
            plays.append(await play_of(backend, by, scenario.operator_at))
        finally:
            await backend.close()
    return plays


class GameDayResult(NamedTuple):
    """``until`` is how long the team had, in virtual seconds after it came."""

    scenario: str
    team: Play
    others: Sequence[Play]
    until: float

    @property
    def better(self) -> tuple[Play, ...]:
        """The other ways that are worse in nothing and better in something."""
        return tuple(play for play in self.others if play.is_better_than(self.team))

    def mistakes(self) -> Iterator[str]:
        """What would have been better, in one sentence each."""
        team = self.team
        if team.led < team.offline:
            yield f"{counted(team.offline - team.led, 'partition')} still without a leader"
        for play in self.better:
            parts = []
            if play.led > team.led:
                parts.append(f"{counted(play.led - team.led, 'more partition')} led again")
            if play.gone < team.gone:
                parts.append(f"{counted(team.gone - play.gone, 'acknowledged record')} kept")
            if play.seconds + SLOW < team.seconds and team.led:
                parts.append(f"{exact_age(team.seconds - play.seconds)} sooner")
            yield f"better: {play.by}: {', '.join(parts)}"
        if 0 < team.written_back < team.lost:
            yield f"{counted(team.lost - team.written_back, 'record')} cut off and not written back"


def result_lines(result: GameDayResult) -> Iterator[str]:
    """For a terminal, above the table."""
    team = result.team
    yield f"{result.scenario}: {exact_age(result.until)} after the operator came"
    led = f"{team.led:,} of {counted(team.offline, 'partition')} led again"
    yield f"{led}; {counted(team.gone, 'acknowledged record')} gone for good"
    yield from (f"  ! {text}" for text in result.mistakes())
    if not result.better:
        yield f"none of {counted(len(result.others), 'other way')} that were tried is better in all"


def result_blocks(result: GameDayResult, made: str) -> Iterator[ReportBlock]:
    """For Markdown and a page."""
    first, *rest = result_lines(result)
    yield ReportHeading(1, "Game day")
    yield ReportText(f"{made}. {first}.")
    yield ReportList(tuple(line.removeprefix("  ! ") for line in rest))
    yield ReportHeading(2, "What was done, and what could have been")
    yield from report_table(PLAY, (result.team, *result.others))


def result_document(result: GameDayResult) -> Iterator[str]:
    """``ktriage.gameday/1``."""
    return document(
        "gameday",
        {
            "scenario": result.scenario,
            "seconds": result.until,
            "team": json_of(PLAY)(result.team),
            "others": list(map(json_of(PLAY), result.others)),
            "mistakes": list(result.mistakes()),
        },
    )
