"""``ktriage journal``."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.base.options import connected
from console.cli.base.run import Run


def journal(
    run: Run,
    *,
    cluster_id: Annotated[
        str | None,
        typer.Option("--cluster-id", metavar="ID", help="Show only this cluster. No cluster is contacted."),
    ] = None,
    last: Annotated[
        int,
        typer.Option(
            "--last",
            metavar="N",
            min=1,
            help="How many runs of each cluster are shown, counted from the newest.",
        ),
    ] = 20,
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
