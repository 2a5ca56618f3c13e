"""``ktriage log-dirs``."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import Rows, connected
from console.errors import InputError
from console.exit_status import STATUS_HELP

HELP = f"""\
Shows every broker's log dirs: state, bytes used and free, replicas. Of a dir that failed: what was on it, what
the controller did about it and what is left to do; partitions that lost their last copy stand first. Nothing is
changed.

With --if-fails: what would happen if a dir, or a whole broker, failed now: which partitions would change leader,
and to whom, fall under min ISR, or go offline. With --swap: the steps to replace a disk, and the partitions that
its broker could be elected to lead with an empty disk, which are recovered first; with --wait it then waits until
every replica is back in the ISR.

\b
Examples:
  ktriage log-dirs --bootstrap-server kafka-1:9092
  ktriage log-dirs --bootstrap-server kafka-1:9092 --if-fails 1:/data/2 --if-fails 2
  ktriage log-dirs --bootstrap-server kafka-1:9092 --swap 1:/data/2 --wait

{STATUS_HELP}"""


def log_dirs(
    run: Run,
    *,
    if_fails: Annotated[
        list[str] | None,
        typer.Option("--if-fails", metavar="BROKER[:DIR]", help="What its failure takes. May be repeated."),
    ] = None,
    swap: Annotated[
        str | None, typer.Option("--swap", metavar="BROKER:DIR", help="The steps to replace that disk.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --swap: wait until its replicas are back in the ISR.")
    ] = False,
    rows: Rows = 20,
) -> int:
    if if_fails and swap:
        raise InputError("--if-fails and --swap exclude each other")
    if wait and not swap:
        raise InputError("--wait is for --swap")
    from console.cli.disks import log_dir_views  # noqa: PLC0415  # not for --help

    if if_fails:
        return log_dir_views.predict(run, [log_dir_views.place(text, whole=True) for text in if_fails], rows)
    if swap:
        return log_dir_views.swap_disk(run, log_dir_views.place(swap, whole=False), rows, wait=wait)
    return log_dir_views.show(run, rows)


log_dirs.__doc__ = HELP
command = connected(log_dirs)
