"""``ktriage readiness``."""

from __future__ import annotations

from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import PageOutput, Run
from recovery.readiness import Weight


def readiness(
    run: Run,
    *,
    fail_on: Weight = option(
        "--fail-on",
        "The lightest weakness for which the exit status is 1. A check that could show such a weakness and could"
        " not be made counts like it.",
        Weight.SERIOUS,
    ),
    output: PageOutput = declared.PAGE_OUTPUT,
) -> int:
    """Says what would make a night long on this cluster, before it happens: brokers and controllers that cannot be
    reached from here, missing permissions, topics whose settings lose records or stop writes when one broker
    fails, replicas in one rack, a quorum that tolerates no failure, a metadata log that proves nothing, full disks,
    clocks that differ, a journal that nobody else can read. Each weakness has its weight, what was looked at, and
    what mends it. Nothing is changed.

    The score is the part of all checks' points that was not lost: a check loses the points of its gravest weakness
    (grave 10, serious 3, light 1), and a grave one halves the rest. What could not be looked at is named, and
    counts neither way. The score of the run before is remembered on this host.

    \b
    Examples:
      ktriage readiness --bootstrap-server kafka-1:9092
      ktriage readiness --cluster production --output html > readiness.html
      ktriage readiness --cluster production --fail-on grave
    """
    from console.jobs.status.readiness_view import show_readiness  # noqa: PLC0415  # not for --help

    return show_readiness(run, fail_on, output)


command = connected(readiness)
