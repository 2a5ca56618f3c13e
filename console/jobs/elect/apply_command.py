"""``ktriage apply``."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import connected, stated
from console.cli.base.run import Run
from console.errors import InputError
from console.jobs.rescue.rescue_options import ELECT_UNRESCUED, NO_RESCUE, RESCUE_INTO, rescue_choice
from console.provenance import user


def apply(
    run: Run,
    *,
    plan: Path = declared.PLAN_FILE,
    first: int | None = option("--first N", "Apply only the first N partitions of the plan.", min=1),
    only: list[str] | None = option("--only TOPIC", "Apply only partitions of this topic. May be repeated."),
    max_loss: int | None = option(
        "--max-loss N",
        "Apply only partitions that lose at most N offsets. The limit also counts what is lost if the"
        " chosen leader fails and the next replica is elected. Default: no limit.",
        min=0,
    ),
    ignore_successor_loss: bool = option(
        "--ignore-successor-loss",
        "For --max-loss: count only the loss of the chosen leader, not of the next replica.",
    ),
    stop_after: int | None = option(
        "--stop-after K", "Stop after K elections have failed. Default: send all.", min=1
    ),
    reviewed_by: str | None = declared.REVIEWED_BY,
    digest: str | None = declared.DIGEST,
    rescue: Path | None = RESCUE_INTO,
    no_rescue: bool = NO_RESCUE,
    rate: str | None = declared.RATE,
    elect_unrescued: bool = ELECT_UNRESCUED,
    keep_log_of: str | None = declared.KEEP_LOG_OF,
    rehearse: bool = option(
        "--rehearse",
        "Apply the plan to a simulated copy of the cluster first, also with a broker that drops out in the middle,"
        " and show what happened before the question. With --yes: send nothing unless every row was elected there.",
    ),
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    recovery_election_attempts: int = declared.RECOVERY_ATTEMPTS,
    rows: int = declared.ROWS,
) -> int:
    """Elects the leaders of a plan. Every precondition of every row is checked again first: the topic, the
    leader epoch, the assignment, and the log end of each candidate. Stale rows are refused one by one.
    Partitions that are already online are reported as such, so it is safe to apply a plan twice. For a file
    that names leaders without preconditions, the logs are read first and shown before anything is sent.

    Before anything is sent, you type the number of partitions that may lose something (for one partition: the name
    of its topic) and a reason; without a terminal, --yes and --reason are needed. The journal records the reason,
    what was sent and what was read back.

    With --rehearse the plan is tried first: the cluster is read, copied into the simulator with every log that
    answers, and the same code applies the plan there, twice; the second time the broker that is to lead most of it
    is killed in the middle. That takes about as long as ktriage status, and nothing is sent meanwhile.

    Everything that the elections cut off is read from its brokers first, so that it can be written back; how many
    bytes that are, how long it takes and where to is said before the question. --no-rescue declines it.

    With --keep-log-of, a broker that is down loses its replicas of the plan's partitions as soon as the others are
    in sync. Its log is then kept when it starts, in a folder that ends in -stray, until it is read (ktriage rescue
    read --from-disk) and the replica assigned again (ktriage heal assign-again), which costs a full copy. The
    broker must be down until then: one that is up deletes the log of a replica that it loses.

    \b
    Examples:
      ktriage apply --bootstrap-server kafka-1:9092 recovery.json
      ktriage apply --cluster production recovery.json --rescue /backup/rescue --rate 50MB
      ktriage apply --cluster production recovery.json --keep-log-of 3
      ktriage apply --cluster production recovery.json --rehearse
      ktriage apply --cluster production recovery.json --first 3 --stop-after 1
      ktriage apply --cluster production recovery.json --reviewed-by ada --digest 3f1c…
      ktriage apply --cluster production recovery.json --max-loss 0 --yes --reason "incident 4711"
    """
    if (reviewed_by is None) != (digest is None):
        raise InputError("give --reviewed-by and --digest together")
    if reviewed_by is not None and reviewed_by.strip() == user():
        raise InputError(f"--reviewed-by {reviewed_by}: name somebody else; {user()} runs this command")
    if ignore_successor_loss and max_loss is None:
        raise InputError("--ignore-successor-loss needs --max-loss")
    choice = rescue_choice(rescue, declined=no_rescue, rate=rate, elect_anyway=elect_unrescued)
    why = stated(reason, asked=not yes)
    from console.jobs.elect.apply_plan import ApplyPlan  # noqa: PLC0415
    from console.jobs.elect.plan_views import apply_file  # noqa: PLC0415  # not for --help
    from console.jobs.elect.preserved_logs import brokers_to_keep  # noqa: PLC0415
    from console.plan_file_checks import PlanPart, read_part  # noqa: PLC0415

    part = PlanPart(first, tuple(only or ()), max_loss, successors=not ignore_successor_loss)
    change = ApplyPlan(
        read_part(plan, part, digest),
        why,
        run.target.title,
        plan,
        part,
        attempts=recovery_election_attempts,
        stop_after=stop_after,
        seconds=recovery_duration_ms / 1000,
        rescue=choice,
        keep_logs_of=None if keep_log_of is None else brokers_to_keep(keep_log_of),
        reviewed=f"reviewed by {reviewed_by}, digest {digest}" if reviewed_by else "",
        rehearse=rehearse,
    )
    return apply_file(run, change, command="apply", ask=not yes, rows=rows)


command = connected(apply)
