"""``ktriage handover``."""

from __future__ import annotations

from pathlib import Path

from console.cli.base.options import connected
from console.cli.base.run import Run
from console.jobs.incident.report_command import CLUSTER_ID, METADATA_DIR, SINCE


def handover(
    run: Run,
    *,
    cluster_id: str | None = CLUSTER_ID,
    since: str = SINCE,
    metadata_dir: Path | None = METADATA_DIR,
) -> int:
    """Shows what the next person on call has to know: what is open, the worst first; which brokers and
    partitions are waited for, and since when; what was last done, by whom and why; and the next commands. It
    reads what `ktriage report` reads. Nothing is changed.

    \b
    Examples:
      ktriage handover --bootstrap-server kafka-1:9092
      ktriage handover --cluster production --since 2h
    """
    from console.jobs.incident.incident_view import IncidentOptions, write_handover  # noqa: PLC0415  # not for --help

    return write_handover(run, IncidentOptions(cluster_id, since, metadata_dir=metadata_dir))


command = connected(handover, needed=False, controllers=True)
