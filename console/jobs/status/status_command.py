"""``ktriage status``."""

from __future__ import annotations

from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run
from console.cli.base.unfinished_reminder import remind, resumes_first
from console.errors import InputError, Status
from console.paths import unused
from console.provenance import now
from console.target import Target

ROWS = declared.ROWS.by_default(10)


def status(
    run: Run,
    *,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    rows: int = ROWS,
    evidence: list[Path] | None = declared.EVIDENCE_FILES,
    metadata_dir: Path | None = declared.METADATA_DIR,
    every_profile: bool = option(
        "--all", "The clusters of all profiles at once, instead of one that is named."
    ),
) -> int:
    """Shows the whole cluster on one screen: brokers that are fenced or cannot be reached from here; partitions
    that are offline, under min ISR or in need of the ELR, the worst first, of these the most important (a profile's
    tiers); the metadata quorum; and failed log dirs. Nothing is changed. --output json prints everything: every
    partition with ISR, ELR and LastKnownELR, the last epoch and log end of every replica, all log dirs, and the
    quorum.

    With --metadata-dir and no cluster named, nothing is asked: brokers, partitions, leaders and ISRs are those at
    the end of that metadata log, and what to start first follows from it and from the disks that were scanned
    (--evidence).

    With --all and no cluster named, the clusters of all profiles are read at once: one row each, the worst first.
    The exit status is 0 only if all of them are well, and 3 if none could be read.

    The output names what this user has no permission to see, and each broker that should be up but did not
    answer. The exit status is then 1.

    \b
    Examples:
      ktriage status --bootstrap-server kafka-1:9092
      ktriage status --cluster production --rows 0
      ktriage status --cluster production --output json | jq .counts
      ktriage status --all
      ktriage status --metadata-dir /var/lib/kafka/metadata --evidence broker-1.json --evidence broker-2.json
    """
    if every_profile:
        return _every_cluster(run, recovery_duration_ms / 1000)
    from console.cli.base.partition_options import read_evidence  # noqa: PLC0415
    from console.command_words import evidence_words  # noqa: PLC0415
    from console.jobs.status.overview_report import overview_document, overview_lines  # noqa: PLC0415
    from console.reading.cluster_reading import ClusterReading, not_answered  # noqa: PLC0415
    from console.reading.copied_log import read_metadata_dir  # noqa: PLC0415
    from console.reading.read_cluster import read_cluster  # noqa: PLC0415  # not for --help
    from console.reading.remembered_voters import rebuilt_problems  # noqa: PLC0415
    from recovery.cluster_health import QuorumState  # noqa: PLC0415
    from recovery.unread_disks import before_start, by_broker, still_to_read  # noqa: PLC0415
    from recovery.wording.quantity_text import printable  # noqa: PLC0415

    async def job(backend: Backend, _stop: object) -> tuple[ClusterReading, tuple[str, ...]]:
        reading = await read_cluster(
            backend,
            recovery_duration_ms / 1000,
            now().timestamp(),
            run.screen.progress,
            disks=disks,
            copy=copy,
        )
        problems = await rebuilt_problems(backend, reading.quorum)
        return reading.with_parts(second_quorum=problems.second_quorum), problems.texts

    disks, copy = read_evidence(evidence), read_metadata_dir(metadata_dir)
    view, rebuilt = run.read(job)
    # A reading may take half a minute; a simulation's time stands still meanwhile.
    until = view.began if run.target.kind == "simulated" else now().timestamp()
    resumes = resumes_first(view.cluster.cluster_id, view.cluster_marks)
    head, *rest = overview_lines(view, rows, until, run.target.importance, resumes_first=resumes)
    lines = (head, *(f"  ! {problem}" for problem in rebuilt), *rest)
    run.screen.out(overview_document(view) if run.json else run.target.commands_in(lines))
    missing = not_answered(view)
    for line in missing:
        run.screen.say(f"unknown: {printable(line)}")
    health = view.health
    quorum_first = (
        QuorumState.NO_LEADER,
        QuorumState.CANNOT_COMMIT,
        QuorumState.NOT_REACHED_BY_BROKERS,
        QuorumState.LED_BY_NON_VOTER,
        QuorumState.OLD_VOTERS,
    )
    in_steps = before_start(view.disks) if view.health.current else ()
    to_read = {*health.disks_to_read, *by_broker(still_to_read(view.disks, view.disks))}
    if not remind(run, view.cluster.cluster_id, view, in_steps):
        if health.from_disks:
            if evidence:
                run.next("replicas", "--all-offline-partitions", *evidence_words(evidence))
        elif health.quorum.state in quorum_first:
            run.next("quorum", "status")
        elif view.totals.offline:
            sources = evidence_words(evidence, None if copy is None else copy.path)
            run.next("plan", "--all-offline-partitions", *sources, unused())
        elif health.quorum.dead_voters or rebuilt:
            run.next("quorum", "status")
        elif health.failed_dirs:
            run.next("log-dirs")
        elif replaceable := [broker for broker in health.brokers_down if broker not in to_read]:
            _if_gone(run, replaceable[0])
    return Status.DONE if health.well and not missing and not rebuilt else Status.PARTLY


def _every_cluster(run: Run, duration: float) -> int:
    from console.backends import backend  # noqa: PLC0415  # not for one cluster
    from console.jobs.status import every_cluster  # noqa: PLC0415
    from console.settings import named_profiles  # noqa: PLC0415
    from console.target import resolve  # noqa: PLC0415

    def cluster(name: str) -> tuple[str, Target | None, Backend | InputError]:
        try:
            target = resolve(None, name, None, None)
            return name, target, backend(target, lambda line: run.screen.say(f"{name}: {line}"))
        except InputError as error:
            return name, None, error

    names = [profile.name for profile in named_profiles()]

    async def job(_stop: object) -> tuple[every_cluster.ProfileStatus, ...]:
        return await every_cluster.read_all([cluster(name) for name in names], duration)

    rows = run.program.supervisor.run(job)
    lines = (
        every_cluster.every_cluster_document(rows) if run.json else every_cluster.every_cluster_lines(rows)
    )
    run.screen.out(lines)
    first = next((row for row in rows if row.reading is not None and not row.well), None)
    if first is not None:
        run.screen.say(f"next: {resolve(None, first.name, None, None).command('status')}")
    return every_cluster.status_of_all(rows)


def _if_gone(run: Run, broker: int) -> None:
    """Nothing is offline: waiting for the broker is right, until it is known that it does not come back."""
    words = run.target.command("heal", "show", "--broker-id", str(broker), "--gone-for-good")
    run.screen.say(f"if broker {broker} and its disks do not come back: {words}")


command = connected(status, from_disks=True, all_profiles=True)
