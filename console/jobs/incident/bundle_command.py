"""``ktriage bundle``."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, argument, option
from console.cli.base.options import connected, without_cluster
from console.cli.base.run import Run


def bundle(
    run: Run,
    *,
    to: Path = option("--to FILE", "The new file, such as incident.ktriage.", REQUIRED),
    evidence: list[Path] | None = declared.EVIDENCE_FILES,
    redact: bool = option(
        "--redact", "Give topics, groups, hosts and racks other names. FILE.names says what each stands for."
    ),
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
) -> int:
    """Writes one file with the cluster as it is now, for someone who has no access to it: what brokers and
    controllers answer (every replica's log, log dirs, topics' configurations, quorum, groups), a copy of the
    metadata log, the disks that were scanned (--evidence), and this host's journal and plans. Nothing is changed.

    ktriage --bundle FILE opens the console on it, and every command that only reads takes --bundle FILE instead of
    a cluster. Two people who make a plan from one bundle in the same way get the same file, byte for byte: send it
    back with its digest (ktriage review), and apply it where the cluster is.

    The content of records is never in it: of batches only their headers. Passwords, keys and tokens are left out,
    of the metadata log too. Names of topics, groups, hosts and racks are in it, unless --redact gives them other
    names: then journal, plans and scans are left out, and ktriage bundle --names FILE.names PLAN NEW-PLAN gives the
    cluster's own names to a plan that comes back. What could not be read is named.

    A run that is stopped or fails leaves FILE.part: the same command goes on with the copy of the metadata log.

    \b
    Examples:
      ktriage bundle --cluster production --to incident.ktriage
      ktriage bundle --bootstrap-server kafka-1:9092 --evidence broker-3.json --to incident.ktriage
      ktriage bundle --cluster production --redact --to for-support.ktriage
      ktriage status --bundle incident.ktriage
    """
    from console.jobs.incident.bundle_make import make_bundle  # noqa: PLC0415  # not for --help

    return make_bundle(run, to, tuple(evidence or ()), recovery_duration_ms / 1000, redact=redact)


def plan_with_own_names(
    run: Run,
    *,
    plan: Path = declared.PLAN_FILE,
    to: Path = argument("NEW-PLAN", "The new plan file."),
    names: Path = option("--names FILE", "The file of names beside the bundle.", REQUIRED),
) -> int:
    """Writes a plan that was made from a bundle with other names (--redact), with the cluster's own names.

    \b
    Examples:
      ktriage bundle --names incident.ktriage.names recovery.json own-names.json
    """
    from console.jobs.incident.bundle_names import own_names  # noqa: PLC0415  # not for --help

    return own_names(run, names, plan, to)


command = connected(bundle)
FORMS = {"--names": without_cluster(plan_with_own_names, output=False)}
"""With this option, the command is this other one."""
