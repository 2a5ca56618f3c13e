"""``ktriage watch``."""

from __future__ import annotations

from pathlib import Path
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
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve what each reading shows at http://127.0.0.1:PORT/metrics, for Prometheus"
            " (docs/watching.md). 0: a free port, which is printed.",
        ),
    ] = None,
    metrics_address: Annotated[
        str | None,
        typer.Option(
            "--metrics-address",
            metavar="ADDRESS",
            help="With --metrics-port: listen at this address of this host instead of 127.0.0.1. Whoever reaches it"
            " can read the numbers.",
        ),
    ] = None,
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics-file",
            metavar="FILE.prom",
            help="Write the same to this file at each reading, for node_exporter's textfile collector.",
        ),
    ] = None,
    notify_urls: Annotated[
        Path | None,
        typer.Option(
            "--notify-urls",
            metavar="FILE",
            help="Send the message to the services whose apprise URLs are in this file, one a line: Slack,"
            " PagerDuty, mail, and others. KTRIAGE_NOTIFY_URLS may have more.",
        ),
    ] = None,
    interval_ms: Annotated[
        int | None,
        typer.Option(
            "--interval-ms",
            min=200,
            help="Time between two readings. Default: 2000; with metrics, which need the log dirs too, 15000.",
            show_default=False,
        ),
    ] = None,
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
      ktriage watch --cluster production --metrics-port 9464
    """
    from console.jobs.status.watch_view import MetricsOutput, WaitGoal, watch_cluster  # noqa: PLC0415  # not for --help
    from console.notifications import Notifications  # noqa: PLC0415

    if run.target.kind == "simulated":
        raise InputError(
            "nothing happens in a simulated cluster between two commands; simulate serve runs one"
        )
    awaited = WaitGoal(frozenset(broker_id or ()), online=online)
    if metrics_address is not None and metrics_port is None:
        raise InputError("--metrics-address needs --metrics-port")
    output = MetricsOutput(metrics_file, metrics_port, metrics_address or "127.0.0.1")
    interval = interval_ms or (15_000 if output else 2_000)
    return watch_cluster(
        run, awaited, Notifications.given(notify, webhook, notify_urls), output, interval / 1000
    )


command = connected(watch)
