"""``ktriage timeline``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run
from console.errors import InputError
from recovery.metadata_log.partition_states import EventKind


class TimelineOutput(StrEnum):
    """How a timeline is written."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def timeline(
    run: Run,
    *,
    metadata_dir: Path | None = option(
        "--metadata-dir DIR",
        "Read this __cluster_metadata-0 directory, or the log dir that contains it, instead of a cluster.",
    ),
    topic: list[str] | None = option("--topic TOPIC", "Show only this topic. May be repeated."),
    partition: int | None = option("--partition N", "Only this partition of the one --topic.", min=0),
    broker_id: list[int] | None = option(
        "--broker-id N",
        "Show only events of this broker: fencing, leadership, ISR, ELR. May be repeated.",
        min=0,
    ),
    kind: list[EventKind] | None = option("--kind", "Show only this kind of event. May be repeated."),
    since: str | None = option(
        "--since TIME", "Show only events from this time on: 90s, 15m, 2h, 3d ago, or 2026-11-22T18:13 (UTC)."
    ),
    until: str | None = option("--until TIME", "Show only events until this time, written as for --since."),
    last: int = option("--last N", "How many events are shown, counted from the newest; 0: all.", 50, min=0),
    follow: bool = option("--follow, -f", "Also show new events as they happen, until Ctrl-C."),
    output: TimelineOutput = option(
        "--output",
        "table for people, json for programs, markdown for an incident channel.",
        TimelineOutput.TABLE,
    ),
) -> int:
    """Shows what happened in the cluster and when, as its metadata log records it: brokers that were fenced
    and came back, partitions that went offline and their ISR and ELR at that time, clean and unclean
    elections, reassignments, configuration changes. The newest event comes last. Times are exact to the
    millisecond.

    \b
    The log is read
      from the active controller  which must be reachable from here; needs CLUSTER_ACTION on the cluster
      from --metadata-dir DIR     __cluster_metadata-0 of any controller or broker, running or not, or a copy
                                  of it; nothing is written there
      from --simulate SCENARIO    the simulated controllers' own, with virtual times

    \b
    Examples:
      ktriage timeline --bootstrap-controller controller-1:9093
      ktriage timeline --bootstrap-server kafka-1:9092 --since 2h --topic orders
      ktriage timeline --bootstrap-controller controller-1:9093 --follow
      ktriage timeline --metadata-dir /var/lib/kafka/metadata/__cluster_metadata-0 --kind offline
      ktriage timeline --metadata-dir ./copy --topic orders --partition 7 --output markdown
      ktriage timeline --simulate stale-long-tail
    """
    # Not for --help.
    from console.cli.base.option_values import moment_ms  # noqa: PLC0415
    from console.jobs.timeline.metadata_log_view import TimelinePrinter  # noqa: PLC0415
    from console.jobs.timeline.timeline import EventFilter  # noqa: PLC0415

    if partition is not None and len(topic or ()) != 1:
        raise InputError("--partition is one of a topic: give one --topic with it")
    wanted = EventFilter(
        frozenset(topic or ()),
        partition,
        frozenset(broker_id or ()),
        frozenset(kind or ()),
        None if since is None else moment_ms("--since", since),
        None if until is None else moment_ms("--until", until),
    )
    view = TimelinePrinter(run, wanted, last, markdown=output is TimelineOutput.MARKDOWN)
    if metadata_dir is None:
        if follow and run.target.kind == "simulated":
            raise InputError("--follow: nothing happens in a simulated cluster between two commands")
        return view.of_cluster(follow=follow)
    if run.named is not None:
        raise InputError("--metadata-dir is read instead of a cluster: give only one of them")
    if follow:
        raise InputError(
            "--follow needs a running cluster: give --bootstrap-controller or --bootstrap-server"
        )
    return view.of_directory(metadata_dir)


command = connected(timeline, needed=False, controllers=True)
