"""``ktriage simulate``."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from console.cli.base.run import Output
from console.cli.commands.options import OutputFormat
from console.errors import InputError
from console.exit_status import STATUS_HELP
from console.program import Program
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
  serve   the scenario on the wire: a listener for each broker and controller, for any Kafka client
  step    let SECONDS of virtual time go by in what is served
  fault   let something happen in what is served: kill broker-1, cut broker-2, set-config topic=… name=… value=…

\b
A --users FILE is YAML, one entry a user; what is not denied is allowed:
  alice: {{password: wonder}}
  bob: {{password: builder, denied: ["ALTER cluster", "READ topic payments", "DESCRIBE topic *"]}}

Every other command takes --simulate SCENARIO in place of --bootstrap-server; what it does lasts until reset.

\b
Examples:
  ktriage simulate list
  ktriage simulate run stale-long-tail --strategy aggressive
  ktriage plan --simulate stale-long-tail recovery.json
  ktriage simulate fuzz --seeds 1000 --jobs 2
  ktriage simulate serve stale-long-tail
  ktriage simulate fault kill broker-2

{STATUS_HELP}"""


class Verb(StrEnum):
    """What to do."""

    LIST = "list"
    SHOW = "show"
    RUN = "run"
    FUZZ = "fuzz"
    RESET = "reset"
    SERVE = "serve"
    STEP = "step"
    FAULT = "fault"


# What each takes besides --output; words are what follows it.
TAKES: dict[Verb, tuple[str, ...]] = {
    Verb.LIST: (),
    Verb.SHOW: ("scenario",),
    Verb.RUN: ("scenario", "seed", "strategy", "ranking", "until"),
    Verb.FUZZ: ("seed", "seeds", "jobs"),
    Verb.RESET: ("scenario", "seed", "state"),
    Verb.SERVE: ("scenario", "seed", "speed", "port_base", "without", "users", "cluster_id"),
    Verb.STEP: ("scenario", "port_base"),
    Verb.FAULT: ("scenario", "words", "port_base"),
}
VerbArgument = Annotated[
    Verb, typer.Argument(metavar="list|show|run|fuzz|reset|serve|step|fault", show_default=False)
]
ScenarioArgument = Annotated[
    str | None,
    typer.Argument(metavar="[SCENARIO]", help="A scenario's name, or a .yaml file.", show_default=False),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[WORD]...", help="fault: what it happens to.", show_default=False),
]
StrategyOption = Annotated[
    Strategy | None,
    typer.Option("--strategy", help="run: recover by this strategy when the operator comes."),
]
RankingOption = Annotated[
    Ranking, typer.Option("--ranking", help="run: what makes a log the best, for --strategy.")
]
Until = Annotated[
    float | None,
    typer.Option("--until", metavar="SECONDS", help="run: the virtual time at which it ends."),
]
StateFile = Annotated[
    Path | None, typer.Option("--state", metavar="FILE", help="reset: the state that was kept there.")
]
Speed = Annotated[
    float,
    typer.Option("--speed", min=0, max=1000, help="serve: virtual seconds a second; 0: it is stepped."),
]
PortBase = Annotated[
    int, typer.Option("--port-base", min=0, metavar="PORT", help="serve, step, fault: the first port.")
]
Without = Annotated[
    str,
    typer.Option("--without", metavar="CALL[:VERSION],…", help="serve: calls not offered, from VERSION on."),
]
Users = Annotated[
    Path | None,
    typer.Option("--users", metavar="FILE", help="serve: SASL PLAIN users, and what each is denied."),
]
ClusterId = Annotated[
    str,
    typer.Option("--cluster-id", metavar="ID", help="serve: this id, not a new one each time it is served."),
]


def simulate(
    ctx: typer.Context,
    verb: VerbArgument,
    scenario: ScenarioArgument = None,
    words: Words = None,
    *,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The run's only source of randomness.")] = 1,
    strategy: StrategyOption = None,
    ranking: RankingOption = Ranking.LAST_RECORD,
    until: Until = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, metavar="N", help="fuzz: how many seeds.")] = 100,
    jobs: Annotated[int, typer.Option("--jobs", min=1, metavar="J", help="fuzz: processes at once.")] = 1,
    state: StateFile = None,
    speed: Speed = 1.0,
    port_base: PortBase = 19_092,
    without: Without = "",
    users: Users = None,
    cluster_id: ClusterId = "",
    output: OutputFormat = Output.TABLE,
) -> int:
    program: Program = ctx.obj
    _refuse_unused(ctx, verb, [*([scenario] if scenario else []), *(words or ())])
    json = output == Output.JSON
    if verb in (Verb.SERVE, Verb.STEP, Verb.FAULT):
        from console.cli.simulation import served_cluster  # noqa: PLC0415  # the wire, for those who serve

        wanted = served_cluster.ServeOptions(seed, speed, port_base, without, users, cluster_id)
        given = [scenario, *(words or ())] if scenario else []
        return served_cluster.act(program, verb.value, given, wanted, json=json)
    from console.cli.simulation import rehearsals  # noqa: PLC0415  # not for --help

    choice = rehearsals.RehearsalOptions(seed, strategy, ranking, until)
    does: dict[Verb, Callable[[], int]] = {
        Verb.FUZZ: lambda: rehearsals.fuzz(program, seed, seeds, jobs, json=json),
        Verb.LIST: lambda: rehearsals.list_scenarios(program, json=json),
        Verb.SHOW: lambda: rehearsals.show(program, rehearsals.needed(scenario, "show"), json=json),
        Verb.RESET: lambda: rehearsals.reset(program, rehearsals.needed(scenario, "reset"), seed, state),
        Verb.RUN: lambda: rehearsals.run(program, rehearsals.needed(scenario, "run"), choice, json=json),
    }
    return does[verb]()


def _refuse_unused(ctx: typer.Context, verb: Verb, words: list[str]) -> None:
    """Raises InputError: what is given and does nothing was meant to do something."""
    takes = TAKES[verb]
    if "words" not in takes and len(words) > ("scenario" in takes):
        raise InputError(f"simulate {verb.value} does not take {words[-1]!r}")
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        given = source is not None and source.name == "COMMANDLINE"
        if given and name not in (*takes, "verb", "scenario", "words", "output"):
            raise InputError(f"simulate {verb.value} does not take --{name.replace('_', '-')}")


simulate.__doc__ = HELP
command = simulate
