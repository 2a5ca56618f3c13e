"""``ktriage resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.options import connected
from console.cli.run import Run
from console.cli.status import STATUS_HELP

HELP = f"""\
Finishes what an earlier run left half done, because it was killed or lost its network: assignments that still
stand in the order that an election needed are put back in their own. An assignment is written only where it is
exactly the one that the run wrote; whatever somebody else has changed since is left alone and told. The journal
of this host says what is open; with --plan that of another host is made up for by the plan it was applying.

\b
Examples:
  ktriage resume --bootstrap-server kafka-1:9092
  ktriage resume --bootstrap-server kafka-1:9092 --plan recovery.json

{STATUS_HELP}"""


def resume(
    run: Run,
    *,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="The plan that was being applied, from another host, say."
        ),
    ] = None,
) -> int:
    from console.cli.resuming import finish  # noqa: PLC0415  # not for --help

    return finish(run, plan)


resume.__doc__ = HELP
command = connected(resume, controllers=True)
