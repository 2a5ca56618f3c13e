"""``ktriage apply``."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import Attempts, DurationMs, PlanFile, Reason, Rows, Yes, connected, stated
from console.errors import InputError
from console.exit_status import STATUS_HELP

HELP = f"""\
Elects the leaders of a plan. Every fence of every row is looked at again first: the topic, the leader epoch, the
assignment, and how far each candidate's log goes; what is stale is refused row by row, what is online already is
reported as such, so that applying twice does no harm. A file that holds leaders only is asked afresh.

Before anything is sent it asks: on a terminal the number of partitions that may lose something is typed,
elsewhere --yes and --reason are needed. What was sent and read back is in the journal.

\b
Examples:
  ktriage apply --bootstrap-server kafka-1:9092 recovery.json
  ktriage apply --cluster production recovery.json --first 3 --stop-after 1
  ktriage apply --cluster production recovery.json --reviewed-by ada --digest 3f1c…
  ktriage apply --cluster production recovery.json --max-loss 0 --yes --reason "incident 4711"

{STATUS_HELP}"""


First = Annotated[
    int | None,
    typer.Option("--first", metavar="N", min=1, help="The first N partitions of the plan only."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="TOPIC", help="Partitions of this topic only. May be repeated."),
]
MaxLoss = Annotated[
    int | None,
    typer.Option(
        "--max-loss",
        metavar="N",
        min=0,
        help="Only partitions that lose at most N offsets, also if the chosen leader drops out and the next one"
        " is elected.",
    ),
]
IgnoreSuccessorLoss = Annotated[
    bool,
    typer.Option(
        "--ignore-successor-loss",
        help="For --max-loss: count the loss of the chosen leader only, not that of the next one.",
    ),
]
StopAfter = Annotated[
    int | None,
    typer.Option("--stop-after", metavar="K", min=1, help="Send nothing more once K elections have failed."),
]
ReviewedBy = Annotated[
    str | None,
    typer.Option("--reviewed-by", metavar="NAME", help="Who reviewed the plan; needs --digest."),
]
Digest = Annotated[
    str | None,
    typer.Option("--digest", metavar="SHA256", help="The digest of the plan that was reviewed."),
]


def apply(
    run: Run,
    *,
    plan: PlanFile,
    first: First = None,
    only: Only = None,
    max_loss: MaxLoss = None,
    ignore_successor_loss: IgnoreSuccessorLoss = False,
    stop_after: StopAfter = None,
    reviewed_by: ReviewedBy = None,
    digest: Digest = None,
    yes: Yes = False,
    reason: Reason = None,
    recovery_duration_ms: DurationMs = 30_000,
    recovery_election_attempts: Attempts = 3,
    rows: Rows = 20,
) -> int:
    if (reviewed_by is None) != (digest is None):
        raise InputError("--reviewed-by and --digest need each other")
    if ignore_successor_loss and max_loss is None:
        raise InputError("--ignore-successor-loss is for --max-loss, which is not given")
    why = stated(reason, asked=not yes)
    from console.cli.recovery.apply_plan import Request, apply_file  # noqa: PLC0415  # not for --help

    return apply_file(
        run,
        Request(
            "apply",
            plan,
            first=first,
            only=tuple(only or ()),
            max_loss=max_loss,
            ignore_successor_loss=ignore_successor_loss,
            stop_after=stop_after,
            reviewed_by=reviewed_by,
            digest=digest,
            ask=not yes,
            reason=why,
            seconds=recovery_duration_ms / 1000,
            attempts=recovery_election_attempts,
            rows=rows,
        ),
    )


apply.__doc__ = HELP
command = connected(apply)
