"""``ktriage log-dirs``."""

from __future__ import annotations

from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run
from console.errors import InputError


def log_dirs(
    run: Run,
    *,
    if_fails: list[str] | None = option(
        "--if-fails BROKER[:DIR]",
        "Show what the failure of this dir or broker would affect. May be repeated: all fail at once.",
    ),
    swap: str | None = option("--swap BROKER:DIR", "Show the steps to replace the disk of this dir."),
    wait: bool = option("--wait", "With --swap: wait until all replicas of the dir are back in the ISR."),
    rows: int = declared.ROWS,
) -> int:
    """Shows the log dirs of every broker: state, bytes used and free, replicas. For a failed dir: the
    replicas that were on it, what the controller did about each, and what is left to do; partitions that lost
    their last copy come first. Nothing is changed.

    --if-fails shows what would happen if a dir or a whole broker failed now: which partitions would get
    another leader, and which one, which would fall under min ISR, and which would go offline. --swap shows
    the steps to replace a disk. It lists the partitions that must be recovered first, because the broker
    could be elected to lead them with its empty disk. --wait then waits until every replica is back in the
    ISR.

    \b
    Examples:
      ktriage log-dirs --bootstrap-server kafka-1:9092
      ktriage log-dirs --bootstrap-server kafka-1:9092 --if-fails 1:/data/2 --if-fails 2
      ktriage log-dirs --bootstrap-server kafka-1:9092 --swap 1:/data/2 --wait
    """
    if if_fails and swap:
        raise InputError("--if-fails and --swap exclude each other")
    if wait and not swap:
        raise InputError("--wait needs --swap")
    from console.jobs.disks import log_dir_views  # noqa: PLC0415  # not for --help

    if if_fails:
        return log_dir_views.predict(
            run, [log_dir_views.place("--if-fails", text, whole=True) for text in if_fails], rows
        )
    if swap:
        return log_dir_views.swap_disk(run, log_dir_views.place("--swap", swap, whole=False), rows, wait=wait)
    return log_dir_views.show(run, rows)


command = connected(log_dirs)
