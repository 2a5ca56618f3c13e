"""The course of ``ktriage gameday``."""

from __future__ import annotations

import asyncio
import shlex
from functools import partial
from pathlib import Path

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.loop import SECOND
from console.cli.base.run import PageOutput, Run
from console.errors import InputError, Status
from console.jobs.gameday.gameday_incident import GameDay, IncidentKind, game_day_text, make_game_day
from console.jobs.gameday.gameday_score import (
    PLAY,
    GameDayResult,
    other_plays,
    play_of,
    result_blocks,
    result_document,
    result_lines,
)
from console.jobs.simulate.rehearsals import copied_cluster
from console.journal.recorded_restores import recorded_restores
from console.journal.run_records import read_runs
from console.new_files import write_new
from console.output.json_document import document
from console.paths import named_state_dir, use_state_dir
from console.provenance import made_text, now_ms
from console.signals import StopRequest
from console.simulator_backend import scenario as scenario_of
from console.simulator_backend import state_file
from widgets.fields import text_rows


def prepare_game_day(run: Run, to: Path, fails: str, duration: float, *, tell: bool) -> int:
    """Writes the scenario file ``to``; returns the exit status. Raises InputError, BackendError, NotDone and
    Stopped.
    """
    kinds = tuple(IncidentKind) if fails == "worst" else (IncidentKind(fails),)

    copy = copied_cluster(run, to, (), duration)

    async def tried(_stop: StopRequest) -> GameDay:
        return await make_game_day(copy, kinds, run.screen.progress)

    day = run.program.supervisor.run(tried)
    write_new(to, day.text)
    if run.json:
        failure_text = game_day_text(day) if tell else None
        run.screen.out(
            document("gameday-prepare", {"file": str(to), "failure": failure_text, "tried": day.tried})
        )
        return Status.DONE
    run.screen.out([f"{to}: {game_day_text(day) if tell else 'something fails; --tell says what'}"])
    run.screen.say(f"next: {shlex.join(('ktriage', '--simulate', str(to)))}")
    run.screen.say(f"afterwards: {shlex.join(('ktriage', 'gameday', 'score', str(to)))}")
    return Status.DONE


def score_game_day(run: Run, name: str, seed: int, state: Path | None, output: PageOutput) -> int:
    """Prints what came of it; returns the exit status: 0 without a mistake. Raises InputError."""
    scenario = scenario_of(name)
    use_state_dir(named_state_dir(), state)
    saved = state or state_file(scenario, seed)
    if not saved.exists():
        raise InputError(f"{name} was not played yet: ktriage --simulate {shlex.quote(name)}")

    async def played() -> GameDayResult:
        backend = SimulatorBackend(scenario, seed, saved, shares=lambda: None)
        try:
            cluster = await backend.open()
            until = backend.simulation.now
            restores = recorded_restores(read_runs(cluster.cluster_id))
            back = sum(one.records or 0 for one in restores)
            team = await play_of(backend, "the team", scenario.operator_at, back)
        finally:
            await backend.close()
        others = await other_plays(scenario, seed, until)
        return GameDayResult(name, team, others, max(0, until - scenario.operator_at) / SECOND)

    result = asyncio.run(played())
    lines = (*result_lines(result), "", *text_rows(PLAY, (result.team, *result.others)))
    blocks = result_blocks(result, made_text(now_ms()))
    run.out_page(output, "Game day", blocks, lines, partial(result_document, result))
    return Status.PARTLY if any(result.mistakes()) else Status.DONE
