"""``ktriage metadata-log``: its verb and its options."""

from __future__ import annotations

from pathlib import Path

from console.cli.base.declaration import REQUIRED, option
from console.cli.base.options import connected
from console.cli.base.run import Run
from console.cli.base.verbs import Verb
from console.errors import InputError

HELP = """\
The cluster's metadata log: every change of its brokers, topics, partitions and configurations, in order.

ktriage timeline shows what it says.

\b
Examples:
  ktriage metadata-log copy --bootstrap-controller controller-1:9093 --to ./copy
  ktriage timeline --metadata-dir ./copy
"""


def copy(
    run: Run,
    *,
    to: Path = option(
        "--to DIR",
        "The directory: a new one, or one with an earlier copy of this cluster's log, which is continued.",
        REQUIRED,
    ),
    follow: bool = option("--follow, -f", "Go on copying what is committed, until Ctrl-C."),
) -> int:
    """Copies the metadata log of a running cluster into a directory, byte for byte, as it lies in
    __cluster_metadata-0 of a controller. pipeline watch reads such directories, and so do timeline, plan, recover
    and replicas with --metadata-dir, and kafka-dump-log --cluster-metadata-decoder. Nothing is sent that changes
    the cluster. Needs CLUSTER_ACTION on the cluster, and a way to the active controller.

    Only committed records are copied. A copy that was stopped or killed is continued. If the cluster no longer has
    the records that come next, the copy goes on with a snapshot, and what it had before is moved to a directory
    DIR/before-OFFSET. With --follow, a new active controller is found, and a cluster that does not answer is asked
    again.

    The log holds SCRAM credentials and the values of all configurations: only the owner may read the files.

    \b
    Examples:
      ktriage metadata-log copy --bootstrap-controller controller-1:9093 --to ./copy
      ktriage metadata-log copy --cluster production --to shipped/production --follow
      ktriage metadata-log copy --simulate stale-long-tail --to ./copy
    """
    from console.jobs.timeline.metadata_log_view import copy_metadata_log  # noqa: PLC0415  # not for --help

    if follow and run.target.kind == "simulated":
        raise InputError("--follow: nothing happens in a simulated cluster between two commands")
    return copy_metadata_log(run, to, follow=follow)


VERBS = (
    Verb("copy", "Copy it from the active controller into a directory.", connected(copy, controllers=True)),
)
