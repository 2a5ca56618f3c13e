"""``ktriage watch``."""

from __future__ import annotations

from pathlib import Path

from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run
from console.errors import InputError


def watch(
    run: Run,
    *,
    broker_id: list[int] | None = option(
        "--broker-id N", "End once this broker is unfenced. May be repeated: all of them.", min=0
    ),
    online: bool = option("--until-online", "End once every partition that may be seen has a leader."),
    notify: str | None = option(
        "--notify COMMAND",
        "Run this at each change, without a shell: the message is in KTRIAGE_MESSAGE, and as JSON on"
        " standard input.",
    ),
    webhook: str | None = option("--webhook URL", 'POST {"text": …, "cluster": …, "kind": …} there.'),
    metrics_port: int | None = option(
        "--metrics-port PORT",
        "Serve what each reading shows at http://127.0.0.1:PORT/metrics, for Prometheus"
        " (docs/watching.md). 0: a free port, which is printed.",
        min=0,
        max=65535,
    ),
    metrics_address: str | None = option(
        "--metrics-address ADDRESS",
        "With --metrics-port: listen at this address of this host instead of 127.0.0.1. Whoever reaches it"
        " can read the numbers.",
    ),
    metrics_file: Path | None = option(
        "--metrics-file FILE.prom",
        "Write the same to this file at each reading, for node_exporter's textfile collector.",
    ),
    notify_urls: Path | None = option(
        "--notify-urls FILE",
        "Send the message to the services whose apprise URLs are in this file, one a line: Slack,"
        " PagerDuty, mail, and others. KTRIAGE_NOTIFY_URLS may have more.",
    ),
    interval_ms: int | None = option(
        "--interval-ms",
        "Time between two readings. Default: 2000; with metrics, which need the log dirs too, 15000.",
        min=200,
    ),
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
