"""``ktriage journal``."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import connected


def journal(
    run: Run,
    *,
    cluster_id: Annotated[
        str | None, typer.Option("--cluster-id", metavar="ID", help="Only this cluster. Nobody is contacted.")
    ] = None,
    last: Annotated[
        int,
        typer.Option(
            "--last", metavar="N", min=1, help="How many runs of each cluster are shown, the newest."
        ),
    ] = 20,
) -> int:
    """Shows what was sent to a cluster from this host, or by everybody who shares the --state-dir: who sent it,
    when, why, with which command, and how each part ended. The newest run comes last. Without a cluster: every
    cluster that has a journal here. A cluster that --bootstrap-server, --bootstrap-controller or --cluster names
    is contacted only to learn its id; --cluster-id contacts nobody.

    \b
    Examples:
      ktriage journal
      ktriage journal --bootstrap-server kafka-1:9092
      ktriage journal --cluster-id 4L6g3nShT-eMCtK--X86sw --output json
    """
    from console.cli.recovery.journal_view import show  # noqa: PLC0415  # not for --help

    return show(run, cluster_id, last)


command = connected(journal, needed=False, controllers=True)
