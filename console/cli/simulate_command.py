"""``ktriage simulate``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from console.cli.options import OutputFormat
from console.cli.run import Output, Program
from console.cli.status import STATUS_HELP
from recovery.ranking import Ranking
from recovery.strategy import Strategy

HELP = f"""\
Rehearses incidents on a simulated cluster. The same scenario and seed give the same history, byte for byte.

\b
  list    the scenarios that come with the tool
  show    what a scenario is and what happens in it
  run     run one; with --strategy a recovery is made when the operator comes, and its true loss is told
  fuzz    random histories, every invariant checked at every step
  reset   forget what --simulate SCENARIO has kept

Every other command takes --simulate SCENARIO in place of --bootstrap-server; what it does lasts until reset.

\b
Examples:
  ktriage simulate list
  ktriage simulate run stale-long-tail --strategy aggressive
  ktriage plan --simulate stale-long-tail recovery.json
  ktriage simulate fuzz --seeds 1000 --jobs 2

{STATUS_HELP}"""


class Verb(StrEnum):
    """What to do."""

    LIST = "list"
    SHOW = "show"
    RUN = "run"
    FUZZ = "fuzz"
    RESET = "reset"


def simulate(
    ctx: typer.Context,
    verb: Annotated[Verb, typer.Argument(metavar="list|show|run|fuzz|reset", show_default=False)],
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="[SCENARIO]", help="A scenario's name, or a .yaml file.", show_default=False),
    ] = None,
    *,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The run's only source of randomness.")] = 1,
    strategy: Annotated[
        Strategy | None,
        typer.Option("--strategy", help="run: recover by this strategy when the operator comes."),
    ] = None,
    ranking: Annotated[
        Ranking, typer.Option("--ranking", help="run: what makes a log the best, for --strategy.")
    ] = Ranking.LAST_RECORD,
    until: Annotated[
        float | None,
        typer.Option("--until", min=0, metavar="SECONDS", help="run: the virtual time at which it ends."),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, metavar="N", help="fuzz: how many seeds.")] = 100,
    jobs: Annotated[int, typer.Option("--jobs", min=1, metavar="J", help="fuzz: processes at once.")] = 1,
    state: Annotated[
        Path | None, typer.Option("--state", metavar="FILE", help="reset: the state that was kept there.")
    ] = None,
    output: OutputFormat = Output.TABLE,
) -> int:
    from console.cli import simulating  # noqa: PLC0415  # not for --help

    program: Program = ctx.obj
    json = output == Output.JSON
    if verb is Verb.FUZZ:
        return simulating.fuzz(program, seed, seeds, jobs, json=json)
    if verb is Verb.LIST:
        return simulating.list_scenarios(program, json=json)
    named = simulating.needed(scenario, verb.value)
    if verb is Verb.SHOW:
        return simulating.show(program, named, json=json)
    if verb is Verb.RESET:
        return simulating.reset(program, named, seed, state)
    return simulating.run(program, named, simulating.Choice(seed, strategy, ranking, until), json=json)


simulate.__doc__ = HELP
command = simulate
