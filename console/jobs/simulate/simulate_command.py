"""``ktriage simulate``: its verbs and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.base.options import OutputFormat
from console.cli.base.run import Output
from console.cli.base.verbs import Verb
from recovery.ranking import Ranking
from recovery.strategy import Strategy

HELP = """\
Rehearses incidents on a simulated cluster. The same scenario and seed always give the same
history, byte for byte. SCENARIO is the name of a scenario that comes with ktriage, or a .yaml file. Every
other command takes --simulate SCENARIO in place of --bootstrap-server; its changes last until ktriage
simulate reset.

\b
Examples:
  ktriage simulate list
  ktriage simulate run stale-long-tail --strategy aggressive
  ktriage plan --simulate stale-long-tail recovery.json
  ktriage simulate serve stale-long-tail
  ktriage simulate fault kill broker-2
"""

ScenarioArgument = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="A scenario's name, or a .yaml file.", show_default=False),
]
SeedOption = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="N", help="The seed: the only source of randomness."),
]
StateFileOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="The state file, if the other commands were run with --state. Default: their default file.",
    ),
]
PortBase = Annotated[
    int,
    typer.Option("--port-base", min=0, metavar="PORT", help="The first port of the served cluster."),
]


def list_(ctx: typer.Context, *, output: OutputFormat = Output.TABLE) -> int:
    """Lists the scenarios that come with ktriage."""
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    return rehearsals.list_scenarios(ctx.obj, json=output == Output.JSON)


def show(ctx: typer.Context, *, scenario: ScenarioArgument, output: OutputFormat = Output.TABLE) -> int:
    """Shows a scenario: the cluster, the faults and their times, and when the operator starts the recovery.

    \b
    Example:
      ktriage simulate show stale-long-tail
    """
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    return rehearsals.show(ctx.obj, scenario, json=output == Output.JSON)


def run(
    ctx: typer.Context,
    *,
    scenario: ScenarioArgument,
    seed: SeedOption = 1,
    strategy: Annotated[
        Strategy | None,
        typer.Option("--strategy", help="Recover with this strategy. Default: no recovery."),
    ] = None,
    ranking: Annotated[
        Ranking, typer.Option("--ranking", help="With --strategy: which log is the best.")
    ] = Ranking.LAST_RECORD,
    until: Annotated[
        float | None,
        typer.Option(
            "--until",
            metavar="SECONDS",
            help="The virtual time at which the run ends. Default: some time after the last fault (see"
            " ktriage simulate show).",
        ),
    ] = None,
    metadata_dir: Annotated[
        Path | None,
        typer.Option(
            "--metadata-dir",
            metavar="DIR",
            help="Write the cluster's metadata log to DIR/__cluster_metadata-0, as a controller's disk holds it.",
        ),
    ] = None,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Runs a scenario to its end and shows what happened. With --strategy, the operator of the scenario
    recovers the offline partitions, and the records that were really lost are counted.

    \b
    Examples:
      ktriage simulate run stale-long-tail --strategy aggressive
      ktriage simulate run stale-long-tail --strategy aggressive --ranking specification --seed 7
      ktriage simulate run stale-long-tail --metadata-dir ./incident
      ktriage timeline --metadata-dir ./incident
    """
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    recovery = None if strategy is None else rehearsals.RecoveryBy(strategy, ranking)
    return rehearsals.run(
        ctx.obj, scenario, seed, recovery, until, metadata_dir=metadata_dir, json=output == Output.JSON
    )


def reset(
    ctx: typer.Context,
    *,
    scenario: ScenarioArgument,
    seed: SeedOption = 1,
    state: StateFileOption = None,
) -> int:
    """Deletes the saved state of --simulate SCENARIO: the scenario starts over.

    \b
    Example:
      ktriage simulate reset stale-long-tail
    """
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    return rehearsals.reset(ctx.obj, scenario, seed, state)


def serve(
    ctx: typer.Context,
    *,
    scenario: ScenarioArgument,
    seed: SeedOption = 1,
    speed: Annotated[
        float,
        typer.Option(
            "--speed",
            min=0,
            max=1000,
            metavar="FACTOR",
            help="Virtual seconds per real second. 0: time passes only with ktriage simulate step.",
        ),
    ] = 1.0,
    port_base: Annotated[
        int,
        typer.Option(
            "--port-base",
            min=0,
            metavar="PORT",
            help="The port of the first node; the other nodes use the next ports. 0: any free ports.",
        ),
    ] = 19_092,
    without: Annotated[
        str,
        typer.Option(
            "--without",
            metavar="CALL[:VERSION],…",
            help="Kafka requests that this cluster does not support; with VERSION: not from that version on.",
        ),
    ] = "",
    users: Annotated[
        Path | None,
        typer.Option(
            "--users",
            metavar="FILE",
            help="A YAML file of SASL PLAIN users and what is denied to each. Default: no authentication.",
        ),
    ] = None,
    cluster_id: Annotated[
        str,
        typer.Option("--cluster-id", metavar="ID", help="The cluster id. Default: a new random id."),
    ] = "",
    output: OutputFormat = Output.TABLE,
) -> int:
    """Serves a scenario on loopback until it is interrupted. Each broker and controller has a listener for
    any Kafka client.

    \b
    A --users FILE has one entry for each user. Everything that is not denied is allowed:
      alice: {password: wonder}
      bob: {password: builder, denied: ["ALTER cluster", "READ topic payments", "DESCRIBE topic *"]}

    \b
    Examples:
      ktriage simulate serve stale-long-tail
      ktriage simulate serve stale-long-tail --speed 0 --port-base 29092 --without ElectLeaders:3
    """
    from console.jobs.simulate import serve_scenario  # noqa: PLC0415  # not for --help

    options = serve_scenario.served_options(
        seed, speed, port_base, without=without, users=users, cluster_id=cluster_id
    )
    return serve_scenario.serve(ctx.obj, scenario, options, json=output == Output.JSON)


def step(
    ctx: typer.Context,
    *,
    seconds: Annotated[
        float,
        typer.Argument(
            metavar="SECONDS", help="Seconds of virtual time, such as 5 or 0.5.", show_default=False
        ),
    ],
    port_base: PortBase = 19_092,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Lets virtual time pass in a cluster of ktriage simulate serve.

    \b
    Example:
      ktriage simulate step 5
    """
    from console.jobs.simulate import serve_scenario  # noqa: PLC0415  # not for --help

    return serve_scenario.step(ctx.obj, seconds, port_base, json=output == Output.JSON)


def fault(
    ctx: typer.Context,
    *,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT [TARGET] [NAME=VALUE]...",
            help="The fault, the node that it hits, and its details.",
            show_default=False,
        ),
    ],
    port_base: PortBase = 19_092,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Injects a fault into a cluster of ktriage simulate serve.

    \b
    Examples:
      ktriage simulate fault kill broker-1
      ktriage simulate fault cut broker-2
      ktriage simulate fault set-config topic=payments name=min.insync.replicas value=1
    """
    from console.jobs.simulate import serve_scenario  # noqa: PLC0415  # not for --help

    return serve_scenario.fault(ctx.obj, words, port_base, json=output == Output.JSON)


def disk(
    ctx: typer.Context,
    *,
    scenario: ScenarioArgument,
    node: Annotated[
        int,
        typer.Argument(
            metavar="NODE", help="The broker's id; with --to, a controller's too.", show_default=False
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Write the broker's log dirs, or the controller's metadata log dir, into DIR, as Kafka lays them"
            " out. DIR must not exist.",
        ),
    ] = None,
    seed: SeedOption = 1,
    state: StateFileOption = None,
) -> int:
    """Prints what ktriage disk scan --output json would read from the disks of a simulated broker, as evidence for
    ktriage plan --evidence. With --to, writes the log dirs themselves, for ktriage disk scan and for ktriage rescue
    read --from-disk; with the metadata log as far as the node has it, also for ktriage quorum evidence and rebuild.

    \b
    Examples:
      ktriage simulate disk stale-long-tail 3 > broker-3.json
      ktriage plan --simulate stale-long-tail --evidence broker-3.json recovery.json
      ktriage simulate disk stale-long-tail 3 --to ./disk-3
      ktriage rescue read --simulate stale-long-tail recovery.json --to ./rescue --from-disk ./disk-3/log-dir-0
      ktriage simulate disk two-of-three-voters-lost 100 --to ./disk-100
    """
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    of = rehearsals.DiskOf(scenario, node, seed, state)
    return rehearsals.scan_disk(ctx.obj, of) if to is None else rehearsals.write_disk(ctx.obj, of, to)


VERBS = (
    Verb("list", "List the scenarios that come with ktriage.", list_),
    Verb("show", "Show the cluster and the faults of a scenario.", show),
    Verb("run", "Run a scenario; with --strategy, recover it and count the true loss.", run),
    Verb("disk", "Print what a scan of a simulated broker's disks finds, or write its log dirs.", disk),
    Verb("reset", "Delete the saved state of --simulate SCENARIO.", reset),
    Verb(
        "serve", "Serve a scenario to Kafka clients, with a listener for each broker and controller.", serve
    ),
    Verb("step", "Let virtual time pass in a served cluster.", step),
    Verb("fault", "Inject a fault into a served cluster.", fault),
)
