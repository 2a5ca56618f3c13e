"""``ktriage simulate``: scenarios are listed, shown, run and reset."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from backends.base.protocol import Backend
from backends.disk_scan.scan_values import DiskScan, scan_lines
from backends.metadata_log.directory import DIRECTORY
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.disk_image import (
    METADATA_DIR,
    simulated_disk_scan,
    write_log_dirs,
    write_metadata_log_dir,
)
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.history import Line
from backends.simulator.loop import SECOND
from backends.simulator.rehearsal import Interrupted, RehearsalResult, end_of, rehearse
from backends.simulator.scenario.bounds import LONGEST
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.files import names
from backends.simulator.session.session_store import SessionStore
from backends.simulator.simulation import Simulation
from backends.simulator.topology import cluster_id
from console.cli.base.partition_options import read_evidence
from console.cli.base.run import Run
from console.errors import InputError, Status
from console.jobs.simulate.cluster_copy import ClusterCopy, read_copy
from console.new_files import refuse_existing, write_new
from console.output.json_document import document
from console.paths import cluster_name, memory_dir, named_state_dir, records_dir, use_state_dir
from console.program import Program
from console.provenance import now
from console.signals import Stopped, StopRequest
from console.simulator_backend import scenario as scenario_of
from console.simulator_backend import state_file
from recovery.disk_evidence import DiskReading
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from widgets.fields import Field, data_field, json_of, text_rows
from widgets.text import fold_text, terminal_width

T = TypeVar("T")
SHOWN = 40
"""Events of a run that a table shows, the newest."""


class RecoveryBy(NamedTuple):
    """How the operator recovers what is offline."""

    strategy: Strategy
    ranking: Ranking


SCENARIO: tuple[Field[Scenario], ...] = (
    Field("name", "SCENARIO", lambda s: s.name),
    Field("title", "WHAT HAPPENS", lambda s: s.title, below=True),
    data_field("offline", lambda s: s.offline),
)


def list_scenarios(program: Program, *, json: bool) -> int:
    """The scenarios that come with the tool."""
    scenarios = [scenario_of(name) for name in names()]
    if json:
        program.screen.out(document("simulate-list", {"scenarios": list(map(json_of(SCENARIO), scenarios))}))
    else:
        program.screen.out(text_rows(SCENARIO, scenarios))
        program.screen.say("next: ktriage simulate show SCENARIO")
    return Status.DONE


def write_copy(run: Run, to: Path, evidence: tuple[Path, ...], duration: float) -> int:
    """Writes the scenario file ``to``; returns the exit status. Raises InputError, BackendError, NotDone and
    Stopped.
    """
    copy = copied_cluster(run, to, read_evidence(evidence), duration)
    write_new(to, copy.text)
    if run.json:
        run.screen.out(document("simulate-from", {"file": str(to), "assumed": list(copy.assumed)}))
    else:
        run.screen.out([f"{to}: the cluster as it was read", *(f"assumed: {one}" for one in copy.assumed)])
        run.screen.say(f"next: ktriage status --simulate {shlex.quote(str(to))}")
    return Status.DONE


def copied_cluster(run: Run, to: Path, disks: tuple[DiskReading, ...], duration: float) -> ClusterCopy:
    """The cluster as a scenario that is to be written to the new file ``to``. Raises InputError, BackendError,
    NotDone and Stopped.
    """
    if to.suffix not in (".yaml", ".yml"):
        raise InputError(f"{to}: a scenario file ends in .yaml")
    refuse_existing(to)

    async def job(cluster: Backend, _stop: StopRequest) -> ClusterCopy:
        return await read_copy(cluster, duration, now().timestamp(), run.screen.progress, disks=disks)

    return run.read(job)


def show(program: Program, name: str, *, json: bool) -> int:
    """What a scenario is and what happens in it."""
    scenario = scenario_of(name)
    topology = scenario.topology
    events = [(fault.at, fault.note or fault.do) for fault in scenario.faults]
    partitions = sum(topic.partitions for topic in topology.topics)
    if json:
        fields = {
            "name": scenario.name,
            "title": scenario.title,
            "about": scenario.about,
            "brokers": len(topology.brokers),
            "controllers": len(topology.every_controller),
            "partitions": partitions,
            "operatorAtMs": _ms(scenario.operator_at),
            "endsAtMs": _ms(end_of(scenario)),
            "offline": scenario.offline,
            "events": [{"atMs": round(at * 1000), "what": what} for at, what in events],
        }
        program.screen.out(document("simulate-show", fields))
        return Status.DONE
    lines = [
        scenario.title,
        scenario.about,
        "",
        f"{len(topology.brokers)} brokers, {len(topology.every_controller)} controllers, {partitions:,} partitions",
        *(f"{at:9.1f} s  {what}" for at, what in events),
        f"{scenario.operator_at / SECOND:9.1f} s  the operator comes; offline should be {scenario.offline:,}",
        f"{end_of(scenario) / SECOND:9.1f} s  a run ends, unless --until says otherwise",
    ]
    program.screen.out(lines)
    command = "replicas --all-offline-partitions" if scenario.offline else "status"
    program.screen.say(f"next: ktriage {command} --simulate {shlex.quote(name)}")
    return Status.DONE


def run(
    program: Program,
    name: str,
    seed: int,
    recovery: RecoveryBy | None,
    until_seconds: float | None,
    *,
    metadata_dir: Path | None,
    json: bool,
) -> int:
    """Runs one scenario; DONE unless it ends otherwise than the scenario expects.

    ``recovery``: None: nobody recovers. ``until_seconds``: virtual; None: as the scenario has it. The metadata log
    is written to ``metadata_dir``; None: it is not.
    """
    scenario = scenario_of(name)
    if until_seconds is not None and not 0 <= until_seconds <= LONGEST:  # nor is nan
        raise InputError(f"simulate run --until: from 0 to {LONGEST:,} seconds, not {until_seconds}")
    until = None if until_seconds is None else round(until_seconds * SECOND)
    stop = program.supervisor.stop
    strategy, ranking = recovery or (None, Ranking.LAST_RECORD)
    if metadata_dir is not None and (metadata_dir / DIRECTORY).exists():
        raise InputError(f"{metadata_dir / DIRECTORY} exists already; nothing is overwritten")

    def at_end(simulation: Simulation) -> None:
        if metadata_dir is not None:
            _write_metadata_log(simulation, metadata_dir)
            _write_meta_properties(cluster_id(name, seed), metadata_dir)

    running = rehearse(
        scenario, seed, strategy, ranking, until, stop=lambda: stop.signum is not None, at_end=at_end
    )
    try:
        done = asyncio.run(running)
    except Interrupted:
        assert stop.signum is not None
        raise Stopped(stop.signum, in_flight=False) from None
    unexpected = [broken for broken in done.broken if broken.name not in scenario.breaks]
    if json:
        came = done.now >= scenario.operator_at
        program.screen.out(document("simulate-run", {**_fields(done), "operatorCame": came}))
    else:
        program.screen.out(_lines(done, scenario.operator_at))
    after = [fault for fault in scenario.faults if round(fault.at * SECOND) > done.now]
    if after:
        first = f"{after[0].at:.1f} s, {after[0].note or after[0].do}"
        program.screen.say(
            f"ended before {len(after):,} of {len(scenario.faults):,} faults, the first at {first}"
        )
    if done.broken:
        program.screen.say(f"replay: {replay(name, seed, recovery, until_seconds)}")
    return Status.PARTLY if unexpected or done.problem or done.unmet else Status.DONE


def _write_metadata_log(simulation: Simulation, directory: Path) -> None:
    log = EncodedMetadataLog(simulation.world.committed_records)
    log.catch_up()
    try:
        log.write(directory)
    except OSError as error:
        raise InputError(f"--metadata-dir {directory}: cannot be written: {error.strerror}") from None


def _write_meta_properties(cluster: str, directory: Path) -> None:
    """The cluster's id, where Kafka's nodes have it."""
    (directory / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\n", encoding="utf-8")


def replay(name: str, seed: int, recovery: RecoveryBy | None, until_seconds: float | None) -> str:
    """The command that runs exactly this again."""
    words = ["ktriage", "simulate", "run", name, "--seed", str(seed)]
    if recovery is not None:
        words += ["--strategy", recovery.strategy.value, "--ranking", recovery.ranking.value]
    if until_seconds is not None:
        words += ["--until", f"{until_seconds:.15g}"]
    return shlex.join(words)


def _fields(done: RehearsalResult) -> dict[str, object]:
    return {
        "scenario": done.scenario,
        "seed": done.seed,
        "virtualMs": _ms(done.now),
        "offline": done.offline,
        "offlineAfter": done.offline_after,
        "verdicts": dict(done.verdicts),
        "outcomes": dict(done.outcomes),
        "lost": [row._asdict() for row in done.lost],
        "lackedByNewLeaders": [_timed(row._asdict()) for row in done.lacked],
        "broken": [_timed(row._asdict()) for row in done.broken],
        "steps": done.steps,
        "digest": done.digest,
        "problem": done.problem,
        "unmet": list(done.unmet),
    }


def _ms(time: int) -> float:
    """Virtual µs as milliseconds."""
    return time / 1000


def _timed(row: dict[str, Any]) -> dict[str, object]:
    return {"atMs": _ms(row.pop("time")), **row}


def _lines(done: RehearsalResult, operator_at: int) -> Iterator[str]:
    yield f"{done.scenario}, seed {done.seed}: {done.now / SECOND:.1f} s of virtual time, {done.steps:,} steps"
    yield from (folded for event in done.history[-SHOWN:] for folded in _event_lines(event))
    if done.now < operator_at:
        yield f"the operator, who comes at {operator_at / SECOND:.1f} s, had not come"
        yield f"offline at the end: {done.offline_after:,}"
    else:
        yield f"offline when the operator came: {done.offline:,}; at the end: {done.offline_after:,}"
    yield from (f"not as the scenario expects: {line}" for line in done.unmet)
    if done.verdicts:
        yield f"decisions: {_counted(done.verdicts.items())}"
    if done.outcomes:
        yield f"elections: {_counted(done.outcomes.items())}"
    if done.problem:
        yield f"not recovered: {done.problem}"
    lost = sum(row.records for row in done.lost)
    yield f"acknowledged with acks=all and lost at the end: {lost:,} records"
    lacked = sum(row.records for row in done.lacked)
    if lacked > lost:
        yield f"(new leaders lacked {lacked:,} when they took over; later leaders had some of these)"
    yield from (f"broken: {broken}" for broken in done.broken)
    yield f"history: {done.digest}"


def _event_lines(event: Line) -> Iterator[str]:
    """One line, or more below each other where the terminal is too narrow."""
    most, text = terminal_width(), str(event)
    if most is None or len(text) <= most:
        yield text
        return
    begin = len(text) - len(event.what)
    first, *others = fold_text(event.what, most - begin)
    yield text[:begin] + first
    yield from (" " * begin + other for other in others)


def _counted(rows: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in rows)


def reset(program: Program, name: str, seed: int, state: Path | None) -> int:
    """Forget what ``--simulate`` has kept of the scenario and seed. The journal, and what is remembered of the
    cluster, are put aside: the next run is another cluster with the same id.
    """
    scenario = scenario_of(name)
    use_state_dir(named_state_dir(), state)
    forgot = SessionStore(scenario, seed, state or state_file(scenario, seed)).reset()
    program.screen.say(f"{name}, seed {seed}: {'starts over' if forgot else 'nothing was kept'}")
    if forgot:
        records = {
            directory / cluster_name(cluster_id(scenario.name, seed))
            for directory in (records_dir(), memory_dir())
        }
        for directory in sorted(records):
            if directory.exists():
                program.screen.say(f"what was recorded of that run: {_renamed(directory)}")
    return Status.DONE


def _renamed(directory: Path) -> Path:
    """Where it is now. Raises InputError."""
    number = 1
    while (aside := directory.with_name(f"{directory.name}.{number}")).exists():
        number += 1
    try:
        return directory.rename(aside)
    except OSError as error:
        raise InputError(f"{directory} could not be put aside: {error.strerror or error}") from None


class DiskOf(NamedTuple):
    """A broker or controller of a scenario; ``state``: the file of the run, None for the one of --simulate."""

    scenario: str
    node: int
    seed: int
    state: Path | None


def scan_disk(program: Program, of: DiskOf) -> int:
    """The evidence of a simulated broker's disks on stdout. Raises InputError."""

    def scanned(backend: SimulatorBackend) -> DiskScan:
        world = backend.simulation.world
        if of.node not in world.disks:
            raise InputError(
                f"{of.node} is a controller, without partitions to scan: --to DIR writes its disk"
            )
        return simulated_disk_scan(world, backend.cluster_id, of.node)

    scan = _with_disks(program, of, scanned)
    program.screen.out(scan_lines(scan))
    return Status.DONE


def write_disk(program: Program, of: DiskOf, directory: Path) -> int:
    """Writes the log dirs of a simulated broker, or a controller's metadata log dir, into a new ``directory``.
    Raises InputError.
    """

    def write(backend: SimulatorBackend) -> tuple[Path, ...]:
        world = backend.simulation.world
        written = write_log_dirs if of.node in world.disks else write_metadata_log_dir
        return written(world, backend.cluster_id, of.node, directory)

    try:
        paths = _with_disks(program, of, write)
    except OSError as error:
        raise InputError(f"--to {directory}: cannot be written: {error.strerror}") from None
    if not paths:
        raise InputError(f"every log dir of node {of.node} has failed: nothing of it can be read")
    program.screen.out([str(path) for path in paths])
    verbs = ("quorum", "evidence") if paths[0].name == METADATA_DIR else ("disk", "scan")
    program.screen.say(f"next: {shlex.join(('ktriage', *verbs, *map(str, paths)))}")
    return Status.DONE


def _with_disks(program: Program, of: DiskOf, job: Callable[[SimulatorBackend], T]) -> T:
    """What ``job`` returns of the run as it was left. Raises InputError for an unknown node, OSError."""
    scenario = scenario_of(of.scenario)
    backend = SimulatorBackend(scenario, of.seed, of.state or state_file(scenario, of.seed))

    async def opened(_stop: StopRequest) -> T:
        try:
            await backend.open()
            world = backend.simulation.world
            if of.node not in world.disks and of.node not in world.quorum.disks:
                raise InputError(f"{of.scenario} has no broker or controller {of.node}")
            return job(backend)
        finally:
            await backend.close()

    return program.supervisor.run(opened)
