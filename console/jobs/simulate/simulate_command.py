"""``ktriage simulate``: its verbs and their options."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import argument, option
from console.cli.base.options import connected, without_cluster
from console.cli.base.run import Run
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

SCENARIO = argument("SCENARIO", "A scenario's name, or a .yaml file.")
SEED = option("--seed N", "The seed: the only source of randomness.", 1, min=0)
STATE_FILE = option(
    "--state FILE",
    "The state file, if the other commands were run with --state. Default: their default file.",
)
PORT_BASE = option("--port-base PORT", "The first port of the served cluster.", 19092, min=0)


def list_(run: Run) -> int:
    """Lists the scenarios that come with ktriage."""
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    return rehearsals.list_scenarios(run.program, json=run.json)


def show(run: Run, *, scenario: str = SCENARIO) -> int:
    """Shows a scenario: the cluster, the faults and their times, and when the operator starts the recovery.

    \b
    Example:
      ktriage simulate show stale-long-tail
    """
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    return rehearsals.show(run.program, scenario, json=run.json)


def run(
    run: Run,
    *,
    scenario: str = SCENARIO,
    seed: int = SEED,
    strategy: Strategy | None = option("--strategy", "Recover with this strategy. Default: no recovery."),
    ranking: Ranking = option("--ranking", "With --strategy: which log is the best.", Ranking.LAST_RECORD),
    until: float | None = option(
        "--until SECONDS",
        "The virtual time at which the run ends. Default: some time after the last fault (see"
        " ktriage simulate show).",
    ),
    metadata_dir: Path | None = option(
        "--metadata-dir DIR",
        "Write the cluster's metadata log to DIR/__cluster_metadata-0, as a controller's disk holds it.",
    ),
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
        run.program, scenario, seed, recovery, until, metadata_dir=metadata_dir, json=run.json
    )


def from_(
    run: Run,
    *,
    to: Path = argument("FILE", "The new scenario file, such as copy.yaml."),
    evidence: list[Path] | None = declared.EVIDENCE_FILES,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
) -> int:
    """Writes a scenario made of a cluster as it is now: brokers, racks, log dirs, partitions, leaders, ISR and ELR,
    min ISR, and every log as its broker describes it, or as the disk of a broker that is down was scanned
    (--evidence). The cluster may be a bundle. Nothing is changed. Every command takes --simulate FILE then: try a
    plan, an election or the start of a broker there first. What could not be read is named, with what is assumed.

    \b
    Examples:
      ktriage simulate from copy.yaml --cluster production
      ktriage simulate from copy.yaml --bundle incident.ktriage
      ktriage --simulate copy.yaml
    """
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    return rehearsals.write_copy(run, to, tuple(evidence or ()), recovery_duration_ms / 1000)


def reset(
    run: Run,
    *,
    scenario: str = SCENARIO,
    seed: int = SEED,
    state: Path | None = STATE_FILE,
) -> int:
    """Deletes the saved state of --simulate SCENARIO: the scenario starts over.

    \b
    Example:
      ktriage simulate reset stale-long-tail
    """
    from console.jobs.simulate import rehearsals  # noqa: PLC0415  # not for --help

    return rehearsals.reset(run.program, scenario, seed, state)


def serve(
    run: Run,
    *,
    scenario: str = SCENARIO,
    seed: int = SEED,
    speed: float = option(
        "--speed FACTOR",
        "Virtual seconds per real second. 0: time passes only with ktriage simulate step.",
        1.0,
        min=0,
        max=1000,
    ),
    port_base: int = option(
        "--port-base PORT",
        "The port of the first node; the other nodes use the next ports. 0: any free ports.",
        19092,
        min=0,
    ),
    without: str = option(
        "--without CALL[:VERSION],…",
        "Kafka requests that this cluster does not support; with VERSION: not from that version on.",
        "",
    ),
    users: Path | None = option(
        "--users FILE",
        "A YAML file of SASL PLAIN users and what is denied to each. Default: no authentication.",
    ),
    cluster_id: str = option("--cluster-id ID", "The cluster id. Default: a new random id.", ""),
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
    return serve_scenario.serve(run.program, scenario, options, json=run.json)


def step(
    run: Run,
    *,
    seconds: float = argument("SECONDS", "Seconds of virtual time, such as 5 or 0.5."),
    port_base: int = PORT_BASE,
) -> int:
    """Lets virtual time pass in a cluster of ktriage simulate serve.

    \b
    Example:
      ktriage simulate step 5
    """
    from console.jobs.simulate import serve_scenario  # noqa: PLC0415  # not for --help

    return serve_scenario.step(run.program, seconds, port_base, json=run.json)


def fault(
    run: Run,
    *,
    words: list[str] = argument(
        "WHAT [TARGET] [NAME=VALUE]...", "The fault, the node that it hits, and its details."
    ),
    port_base: int = PORT_BASE,
) -> int:
    """Injects a fault into a cluster of ktriage simulate serve.

    \b
    Examples:
      ktriage simulate fault kill broker-1
      ktriage simulate fault cut broker-2
      ktriage simulate fault set-config topic=payments name=min.insync.replicas value=1
    """
    from console.jobs.simulate import serve_scenario  # noqa: PLC0415  # not for --help

    return serve_scenario.fault(run.program, words, port_base, json=run.json)


def disk(
    run: Run,
    *,
    scenario: str = SCENARIO,
    node: int = argument("NODE", "The broker's id; with --to, a controller's too."),
    to: Path | None = option(
        "--to DIR",
        "Write the broker's log dirs, or the controller's metadata log dir, into DIR, as Kafka lays them"
        " out. DIR must not exist.",
    ),
    seed: int = SEED,
    state: Path | None = STATE_FILE,
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
    return rehearsals.scan_disk(run.program, of) if to is None else rehearsals.write_disk(run.program, of, to)


VERBS = (
    Verb("list", "List the scenarios that come with ktriage.", without_cluster(list_)),
    Verb("show", "Show the cluster and the faults of a scenario.", without_cluster(show)),
    Verb("run", "Run a scenario; with --strategy, recover it and count the true loss.", without_cluster(run)),
    Verb("from", "Write a scenario made of a cluster as it is now.", connected(from_)),
    Verb(
        "disk",
        "Print what a scan of a simulated broker's disks finds, or write its log dirs.",
        without_cluster(disk, output=False),
    ),
    Verb("reset", "Delete the saved state of --simulate SCENARIO.", without_cluster(reset, output=False)),
    Verb(
        "serve",
        "Serve a scenario to Kafka clients, with a listener for each broker and controller.",
        without_cluster(serve),
    ),
    Verb("step", "Let virtual time pass in a served cluster.", without_cluster(step)),
    Verb("fault", "Inject a fault into a served cluster.", without_cluster(fault)),
)
