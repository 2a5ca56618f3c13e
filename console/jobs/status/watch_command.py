"""``ktriage watch``."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.base.options import connected
from console.cli.base.run import Run
from console.errors import InputError


def watch(
    run: Run,
    *,
    broker_id: Annotated[
        list[int] | None,
        typer.Option(
            "--broker-id",
            metavar="N",
            min=0,
            help="End once this broker is unfenced. May be repeated: all of them.",
        ),
    ] = None,
    online: Annotated[
        bool, typer.Option("--until-online", help="End once every partition that may be seen has a leader.")
    ] = False,
    notify: Annotated[
        str | None,
        typer.Option(
            "--notify",
            metavar="COMMAND",
            help="Run this at each change, without a shell: the message is in KTRIAGE_MESSAGE, and as JSON on"
            " standard input.",
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", metavar="URL", help='POST {"text": …, "cluster": …, "kind": …} there.'),
    ] = None,
    interval_ms: Annotated[
        int, typer.Option("--interval-ms", min=200, help="Time between two readings.")
    ] = 2_000,
) -> int:
    """Waits, and tells what changes: a broker that is back or gone, partitions that lose their leader or have
    one again. A terminal rings its bell and shows the change in its title. Without --broker-id and
    --until-online it goes on until Ctrl-C. While no controller leads, nothing counts as back or online: brokers
    show then what was so before. Nothing is changed.

    \b
    Examples:
      ktriage watch --bootstrap-server kafka-1:9092 --broker-id 3
      ktriage watch --cluster production --until-online --notify 'notify-send Kafka'
      ktriage watch --cluster production --webhook https://chat.example/hook
    """
    from console.jobs.status.watch_view import WaitGoal, watch_cluster  # noqa: PLC0415  # not for --help
    from console.notifications import Notifications  # noqa: PLC0415

    if run.target.kind == "simulated":
        raise InputError(
            "nothing happens in a simulated cluster between two commands; simulate serve runs one"
        )
    awaited = WaitGoal(frozenset(broker_id or ()), online=online)
    return watch_cluster(run, awaited, Notifications.given(notify, webhook), interval_ms / 1000)


command = connected(watch)
