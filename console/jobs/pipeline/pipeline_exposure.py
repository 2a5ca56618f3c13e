"""``ktriage pipeline exposure`` and ``fixes``: what a failure would take, and what to change before it does."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from console.cli.base.declaration import option
from console.cli.base.options import byte_count
from console.cli.base.verbs import Verb
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_options import AT, CLUSTER_IDS, SOURCE, spark_job


class FixGoal(StrEnum):
    """What a failure has to leave of each partition."""

    WRITES = "writes"
    COPIES = "copies"


class CostWeight(StrEnum):
    """What is saved for each byte."""

    PARTITIONS = "partitions"
    BYTES = "bytes"


class Elr(StrEnum):
    """Whether a cluster has eligible leader replicas."""

    ON = "on"
    OFF = "off"


def exposure(
    job: JobOptions,
    *,
    source: list[str] = SOURCE,
    at: str | None = AT,
    cluster_id: list[str] | None = CLUSTER_IDS,
    lose: list[str] | None = option(
        "--lose WHAT",
        "Also answer: what if these fail together? broker=7, rack=b or dir=7:/kafka, joined by commas."
        " May be repeated: each is a question of its own.",
    ),
    min_isr: int | None = option(
        "--min-isr N",
        "Count as if min.insync.replicas of every topic were N. Default: what each topic has.",
        min=1,
    ),
    drain: list[int] | None = option(
        "--drain BROKER",
        "Count what fails after this broker was shut down in a controlled way; answered first: what that"
        " takes. May be repeated: all of them are down then.",
        min=0,
    ),
    elr: Elr | None = option(
        "--elr",
        "Count as if the clusters had eligible leader replicas (KIP-966), or had them not. Default: what"
        " the snapshot shows.",
    ),
) -> int:
    """Shows what the failure of each broker, rack or log dir would do, and of each pair (two brokers, two racks
    or two dirs) that shares a partition: partitions offline, partitions under min ISR, and partitions whose
    acknowledged records would be at risk. Run it while everything works.

    \b
    Examples:
      ktriage pipeline exposure --in lake --out results
      ktriage pipeline exposure --in lake --out results --lose rack=b,broker=7 --lose broker=1,broker=2,broker=3
      ktriage pipeline exposure --in lake --out results --min-isr 1 --elr off
      ktriage pipeline exposure --in lake --out results --drain 7
    """
    from console.jobs.pipeline.spark_job import run_exposure  # noqa: PLC0415  # not for --help
    from pipeline.exposure.what_if import WhatIf, parsed_losses  # noqa: PLC0415

    drained = tuple(sorted(set(drain or ())))
    has_elr = None if elr is None else elr is Elr.ON
    what_if = WhatIf(parsed_losses(lose or ()), min_isr, drained, has_elr)
    return run_exposure(job, source, cluster_id or (), at, what_if)


def fixes(
    job: JobOptions,
    *,
    source: list[str] = SOURCE,
    at: str | None = AT,
    cluster_id: list[str] | None = CLUSTER_IDS,
    goal: FixGoal = option(
        "--goal",
        "What the failure of any one rack (or of a broker whose rack is unknown) has to leave. writes: min"
        " ISR replicas in sync. copies: one.",
        FixGoal.WRITES,
    ),
    weigh: CostWeight = option(
        "--weigh",
        "What is saved for each byte that is copied: partitions, or their bytes.",
        CostWeight.PARTITIONS,
    ),
    tier: list[str] | None = option(
        "--tier TOPICS=WEIGHT",
        "The weight of topics, such as payments-*=10; the first that matches counts. May be repeated."
        " Default: 1.",
    ),
    max_moves: int = option("--max-moves N", "At most N reassignments in each cluster.", 1000, min=1),
    max_bytes: str | None = option("--max-bytes BYTES", "Copy at most this in each cluster, such as 500GB."),
    lower_min_isr: bool = option(
        "--lower-min-isr",
        "Also lower min ISR where that is enough and leaves 2 or more; it copies nothing, and each record"
        " is acknowledged by one replica less.",
    ),
    export: Path | None = option(
        "--export DIR",
        "The new directory for files for Kafka's tools: DIR/CLUSTER_ID/reassignment.json for"
        " kafka-reassign-partitions, and min-isr.sh with kafka-configs, to be run first.",
    ),
) -> int:
    """Finds the fewest changes that let every partition withstand the failure of any one rack or broker: replicas
    moved to other racks, more replicas, or another min ISR. First what a failure would take completely, then what
    saves most for each byte that is copied. Nothing is sent.

    Only where all replicas are in sync, and only to brokers with room on every log dir. No partition gets under min
    ISR by it: where more replicas could do that while they are copied, min ISR is set first. What stays exposed is
    named with the reason.

    \b
    Examples:
      ktriage pipeline fixes --in lake --out results --export fixes
      ktriage pipeline fixes --in lake --out results --goal copies --tier 'payments-*=10' --max-bytes 500GB
    """
    from console.jobs.pipeline.run_fixes import run_fixes  # noqa: PLC0415  # not for --help
    from pipeline.exposure.fix_candidates import Goal  # noqa: PLC0415
    from pipeline.exposure.fix_choice import FixLimits, parsed_tiers  # noqa: PLC0415

    limits = FixLimits(
        Goal(goal.value),
        weigh is CostWeight.BYTES,
        parsed_tiers(tier or ()),
        max_moves,
        byte_count(max_bytes, "--max-bytes"),
        lower_min_isr,
    )
    return run_fixes(job, source, cluster_id or (), at, limits, export=export)


EXPOSURE_VERBS = (
    Verb(
        "exposure",
        "What the failure of a broker, rack or log dir would take offline.",
        spark_job(exposure),
    ),
    Verb("fixes", "The fewest changes that let partitions withstand one failure.", spark_job(fixes)),
)
