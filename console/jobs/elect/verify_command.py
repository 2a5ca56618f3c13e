"""``ktriage verify``."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run


def verify(
    run: Run,
    *,
    plan: Path = declared.PLAN_FILE,
    rescue: Path | None = declared.RESCUED_MARKERS,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    rows: int = declared.ROWS,
    not_as_consumer: bool = option(
        "--not-as-consumer",
        "Do not read the last records of each partition as applications do (by librdkafka, which commits nothing,"
        " and needs READ on the topics and every leader at its advertised address).",
    ),
) -> int:
    """Reads the partitions of a plan after it was applied, and checks three things for each: it has the right
    leader, it is at min ISR (so that it takes writes with acks=all), and it is fully replicated. It says what is
    still missing. Then it names the consumer groups that have read what was cut off, and the transactions that
    lost their marker. An ordinary consumer (librdkafka) reads the end of each partition too, with both isolation
    levels, unless --not-as-consumer is given; where it contradicts what was read here, that is said first.
    Nothing is changed. The exit status is 0 only if the three things are true for every partition, and no consumer
    contradicts; groups and transactions do not change it.

    \b
    Examples:
      ktriage verify --bootstrap-server kafka-1:9092 recovery.json
      ktriage verify --bootstrap-server kafka-1:9092 recovery.json --rescue ./rescue
      ktriage verify --bootstrap-server kafka-1:9092 recovery.json --not-as-consumer
      until ktriage verify --cluster production recovery.json; do sleep 5; done
    """
    from console.jobs.elect.plan_views import verify_file  # noqa: PLC0415  # not for --help

    return verify_file(run, plan, recovery_duration_ms / 1000, rows, rescue, as_consumer=not not_as_consumer)


command = connected(verify)
