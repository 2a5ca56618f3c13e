"""``ktriage journal``."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import connected
from console.exit_status import STATUS_HELP

HELP = f"""\
Shows what was sent to a cluster from this host, or by all who share the --state-dir: who, when, why, with which
command, and how each part of it ended. The newest runs come last. Without a cluster: every cluster that has a
journal here. Only what --cluster or
--bootstrap-server or --bootstrap-controller names is contacted, to learn its id; --cluster-id does without.

\b
Examples:
  ktriage journal
  ktriage journal --bootstrap-server kafka-1:9092
  ktriage journal --cluster-id 4L6g3nShT-eMCtK--X86sw --output json

{STATUS_HELP}"""


def journal(
    run: Run,
    *,
    cluster_id: Annotated[
        str | None, typer.Option("--cluster-id", metavar="ID", help="The cluster, without contacting it.")
    ] = None,
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=1, help="How many runs of each cluster are shown.")
    ] = 20,
) -> int:
    from console.cli.recovery.journal_view import show  # noqa: PLC0415  # not for --help

    return show(run, cluster_id, last)


journal.__doc__ = HELP
command = connected(journal, needed=False, controllers=True)
