"""``ktriage journal``."""

from __future__ import annotations

from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run


def journal(
    run: Run,
    *,
    cluster_id: str | None = option("--cluster-id ID", "Show only this cluster. No cluster is contacted."),
    last: int = option(
        "--last N", "How many runs of each cluster are shown, counted from the newest.", 20, min=1
    ),
) -> int:
    """Shows what was sent to a cluster from this host, or by everybody who shares the --state-dir: who sent
    it, when, why, with which command, and the result of each part. The newest run comes last. If you name no
    cluster, every cluster with a journal here is shown. With --bootstrap-server, --bootstrap-controller or
    --cluster, the cluster is contacted only to read its id; with --cluster-id, no cluster is contacted.

    \b
    Examples:
      ktriage journal
      ktriage journal --bootstrap-server kafka-1:9092
      ktriage journal --cluster-id 4L6g3nShT-eMCtK--X86sw --output json
    """
    from console.jobs.incident.journal_view import show  # noqa: PLC0415  # not for --help

    return show(run, cluster_id, last)


command = connected(journal, needed=False, controllers=True)
