"""``ktriage resume``."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import connected, stated
from console.cli.base.run import Run


def resume(
    run: Run,
    *,
    plan: Path | None = option("--plan FILE", "The plan of the unfinished run, if it ran on another host."),
    confirmed: list[int] | None = option(
        "--confirmed STEP",
        "Report this step of a controller replacement as done on the hosts. May be repeated.",
    ),
    give_up: bool = option("--give-up", "Give up the unfinished controller replacement. Nothing is sent."),
    not_rebuilt: bool = declared.NOT_REBUILT,
    yes: bool = option("--yes", "Change voters without asking for confirmation. Needs --reason."),
    reason: str | None = declared.REASON,
) -> int:
    """Finishes what an earlier run left half done because it was killed or lost its network. First it reverts
    the replica order of assignments that an election had reordered, without asking. An assignment is written
    only if its order is exactly the one that the earlier run wrote, or the original one (that run's request may
    still come); changes by somebody else are reported and left alone. The journal of this host says what is
    unfinished; for a run on another host, --plan names its plan. While a partition has no leader and an
    election of that run may still be carried out, its order stays and the command waits, at most 2.5 minutes
    (with --plan: from when this host first saw the order). Ctrl-C ends the wait; run the command again later.

    Then it continues a controller replacement from the current state of the cluster. Voters are changed after
    a person has agreed, or, without a terminal, with --yes and --reason. Use --confirmed for a step that is
    done but that the cluster cannot show; the journal records it. --give-up gives up the replacement: nothing
    is sent, and the voters stay as they are. With --bootstrap-controller only changes of voters are finished,
    through brokers everything.

    \b
    Examples:
      ktriage resume --bootstrap-server kafka-1:9092
      ktriage resume --bootstrap-server kafka-1:9092 --plan recovery.json
      ktriage resume --bootstrap-controller kafka-101:9093 --confirmed 4
      ktriage resume --bootstrap-controller kafka-101:9093 --yes --reason "incident 4711"
      ktriage resume --bootstrap-controller kafka-101:9093 --give-up
    """
    from console.jobs.incident.resume_view import ReplacementAnswers, finish  # noqa: PLC0415  # not for --help

    why = stated(reason, asked=not yes)
    return finish(
        run, plan, ReplacementAnswers(frozenset(confirmed or ()), give_up, not yes, why, not_rebuilt)
    )


command = connected(resume, controllers=True)
