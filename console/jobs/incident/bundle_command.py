"""``ktriage bundle``."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, option
from console.cli.base.options import connected
from console.cli.base.run import Run


def bundle(
    run: Run,
    *,
    to: Path = option("--to FILE", "The new file, such as incident.ktriage.", REQUIRED),
    evidence: list[Path] | None = declared.EVIDENCE_FILES,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
) -> int:
    """Writes one file with the cluster as it is now, for someone who has no access to it: what brokers and
    controllers answer (every replica's log, log dirs, topics' configurations, quorum, groups), a copy of the
    metadata log, the disks that were scanned (--evidence), and this host's journal and plans. Nothing is changed.

    ktriage --bundle FILE opens the console on it, and every command that only reads takes --bundle FILE instead of
    a cluster. Two people who make a plan from one bundle in the same way get the same file, byte for byte: send it
    back with its digest (ktriage review), and apply it where the cluster is.

    The content of records is never in it: of batches only their headers. Passwords, keys and tokens are left out,
    of the metadata log too. Names of topics, groups and hosts are in it. What could not be read is named.

    A run that is stopped or fails leaves FILE.part: the same command goes on with the copy of the metadata log.

    \b
    Examples:
      ktriage bundle --cluster production --to incident.ktriage
      ktriage bundle --bootstrap-server kafka-1:9092 --evidence broker-3.json --to incident.ktriage
      ktriage status --bundle incident.ktriage
    """
    from console.jobs.incident.bundle_make import make_bundle  # noqa: PLC0415  # not for --help

    return make_bundle(run, to, tuple(evidence or ()), recovery_duration_ms / 1000)


command = connected(bundle)
