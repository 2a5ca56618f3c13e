"""Somebody waits for a broker or a partition, and is told."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.base.answers import Partitions
from backends.base.errors import BackendError, Unreachable
from console.errors import InputError
from console.jobs.status.cluster_watch import open_when_it_answers, read_leaders, watch
from console.jobs.status.watch_view import WaitGoal
from console.notifications import Notifications
from console.output.screen import terminal_signal
from recovery.cluster_changes import WatchedState, cluster_change_text, cluster_changes
from recovery.membership.quorum import Quorum
from recovery.model import Broker, PartitionState, TopicPartition, Unknown, Why
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import cluster_of
from tests.unit.cli.planned_orders import ANY

ORDERS = [TopicPartition("orders", number) for number in range(3)]


def sight(*up: int, leaders: tuple[int, ...] = (1, 1, 1)) -> WatchedState:
    return WatchedState(frozenset(up), dict(zip(ORDERS, leaders, strict=True)))


def texts(before: WatchedState, after: WatchedState) -> list[str]:
    return [cluster_change_text(change, after) for change in cluster_changes(before, after)]


def test_the_worst_is_told_first() -> None:
    before, after = sight(1, 2, leaders=(1, -1, 2)), sight(1, 3, leaders=(-1, 3, 2))
    assert texts(before, after) == [
        "orders-0 is OFFLINE",
        "broker 2 is gone (fenced or not registered)",
        "orders-1 is led by 3 now",
        "broker 3 is back (unfenced)",
    ]


def test_many_partitions_are_one_line() -> None:
    assert texts(sight(1, leaders=(-1, -1, -1)), sight(1)) == [
        "3 partitions have a leader again: orders-0, orders-1, orders-2"
    ]


def test_a_partition_that_was_not_seen_once_is_no_change() -> None:
    assert texts(WatchedState(frozenset({1}), {}), sight(1)) == []


def test_a_broker_that_nobody_knows_is_not_waited_for_without_a_word() -> None:
    """Until Ctrl-C, at night, for a number that was mistyped."""
    awaited = WaitGoal(frozenset({3, 77}), online=False)
    seen = sight(1)._replace(registered=frozenset({1, 2, 3}))
    said = "waiting for broker 3 and broker 77 (not registered: is the number right?)"
    assert awaited.outlook(seen).endswith(said)
    assert "not registered" not in awaited.outlook(sight(1)), "before 4.0, fenced brokers are not listed"


class Starting:
    """A cluster of which nothing listens for the first ``refusals`` attempts."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    async def open(self) -> SimpleNamespace:
        self.refusals -= 1
        if self.refusals >= 0:
            raise Unreachable("no bootstrap server could be asked: connection refused")
        return SimpleNamespace(cluster_id="the-cluster")


def test_a_wait_that_begins_right_after_the_brokers_were_started_waits() -> None:
    said: list[str] = []

    def opened(refusals: int, patience: float = 1_000_000) -> Any:
        starting: Any = Starting(refusals)
        return asyncio.run(open_when_it_answers(starting, 0, NeverStopped(), said.append, patience=patience))

    assert opened(3).cluster_id == "the-cluster"
    (once,) = said
    assert once.startswith("no bootstrap server could be asked: connection refused: asked again for")
    with pytest.raises(Unreachable):
        opened(3, patience=0)


def test_the_command_gets_the_message_and_no_shell_does(tmp_path: Path) -> None:
    script = tmp_path / "tell.sh"
    script.write_text(
        f'#!/bin/sh\nprintf %s "$KTRIAGE_MESSAGE" > {tmp_path}/message\ncat > {tmp_path}/json\n'
    )
    script.chmod(0o755)
    text = "$(touch /tmp/never); orders-0 is OFFLINE"
    sent = asyncio.run(Notifications.given(str(script), None).send({"text": text, "kind": "x"}))
    assert sent == ()
    assert (tmp_path / "message").read_text() == text
    assert json.loads((tmp_path / "json").read_text())["kind"] == "x"


def test_a_command_that_fails_is_told_and_ends_nothing() -> None:
    assert asyncio.run(Notifications.given("false", None).send({"text": "x"})) == (
        "--notify false: exit status 1",
    )
    (missing,) = asyncio.run(Notifications.given("no-such-program", None).send({"text": "x"}))
    assert "No such file" in missing


@contextlib.contextmanager
def hook(*statuses: int) -> Iterator[tuple[str, list[bytes]]]:
    """Answers each POST with the next status, and with the last of them from then on; any GET with 200."""
    bodies: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(statuses[min(len(bodies), len(statuses)) - 1])
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/secret-path", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_webhook_gets_json_and_its_failure_does_not_show_its_address() -> None:
    with hook(200) as (url, bodies):
        assert asyncio.run(Notifications.given(None, url).send({"text": "broker 3 is back"})) == ()
        assert json.loads(bodies[0]) == {"text": "broker 3 is back"}
    with hook(500) as (url, bodies):
        (problem,) = asyncio.run(Notifications.given(None, url, pause=0.0).send({"text": "x"}))
        assert "500" in problem
        assert "secret-path" not in problem
        assert len(bodies) == 3, "sent again twice"


def test_what_arrives_at_the_second_attempt_is_no_failure_and_a_redirect_is_no_delivery() -> None:
    with hook(503, 200) as (url, bodies):
        assert asyncio.run(Notifications.given(None, url, pause=0.0).send({"text": "x"})) == ()
        assert len(bodies) == 2
    with hook(302) as (url, _):
        (problem,) = asyncio.run(Notifications.given(None, url, pause=0.0).send({"text": "x"}))
        assert "302" in problem


def test_services_get_the_text_and_those_that_did_not_are_named_without_their_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = tmp_path / "urls"
    with hook(200) as (well, bodies), hook(302) as (redirected, _), hook(503, 200) as (late, again):
        urls.write_text(f"# for the night\n{_json_service(well)}\n\n{_json_service(late)}\n")
        services = Notifications.given(None, None, urls, pause=0.1)
        assert asyncio.run(services.send({"text": "broker 3 is back"})) == ()
        assert json.loads(bodies[0])["message"] == "broker 3 is back"
        assert len(again) == 2
        monkeypatch.setenv("KTRIAGE_NOTIFY_URLS", _json_service(redirected))
        services = Notifications.given(None, None, urls, pause=0.1)
        assert asyncio.run(services.send({"text": "x"})) == ("--notify-urls: not delivered to JSON",)


def _json_service(url: str) -> str:
    """As apprise writes the address of a service that takes JSON."""
    return url.replace("http://", "json://")


def test_a_line_that_is_no_service_is_named_and_not_shown(tmp_path: Path) -> None:
    urls = tmp_path / "urls"
    urls.write_text("json://127.0.0.1:1/secret\nslack://secret\n")
    with pytest.raises(InputError, match=r"urls, line 2: no address of a service that apprise") as refused:
        Notifications.given(None, None, urls)
    assert "secret" not in str(refused.value)
    for text, problem in (("# nothing\n", "no URL"), (None, "No such file or directory")):
        urls.unlink()
        if text is not None:
            urls.write_text(text)
        with pytest.raises(InputError, match=problem):
            Notifications.given(None, None, urls)
        urls.touch()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "https://", "x"])
def test_only_web_addresses_are_webhooks(url: str) -> None:
    with pytest.raises(InputError):
        Notifications.given(None, url)


def test_a_title_cannot_drive_the_terminal() -> None:
    shown = terminal_signal("a\x1b]0;evil\x07b")
    assert shown.startswith("\a\x1b]2;")
    assert "\x1b" not in shown[2:].replace("\x1b]2;", "").removesuffix("\x1b\\")


def test_nothing_happens_in_a_simulation_between_two_commands(call: Caller) -> None:
    ended = call("ktriage", "watch", "--simulate", "stale-long-tail")
    assert (ended.status, ended.out) == (2, "")


class _Cluster:
    """One reading after another; an error is one that fails."""

    def __init__(self, *readings: WatchedState | BackendError) -> None:
        self._readings = list(readings)
        self._now: WatchedState | None = None

    async def cluster(self) -> Any:
        following = self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]
        if isinstance(following, BackendError):
            raise following
        self._now = following
        return SimpleNamespace(brokers=[Broker(one, "", 0, None, False) for one in following.up])

    async def partitions(self) -> Any:
        assert self._now is not None
        leaders = self._now.leaders.items()
        states = [PartitionState(*tp, "", leader, 1, (1,), (1,), (), (), ()) for tp, leader in leaders]
        return Partitions(tuple(states))

    async def quorum(self) -> Quorum | Unknown:
        assert self._now is not None
        return Unknown(Why.NOT_ANSWERED if self._now.stale else Why.NOT_OFFERED, "the quorum")


async def _told(cluster: _Cluster, until: str) -> list[str]:
    found: list[str] = []
    backend: Any = cluster
    async for report in watch(backend, 0.0, NeverStopped(), read_leaders):
        found += [report.text] if report.text else []
        if until in found:
            return found
    raise AssertionError(found)


class NeverStopped:
    def __bool__(self) -> bool:
        return False


def test_a_cluster_that_is_lost_is_told_once_and_compared_with_what_was_seen_before() -> None:
    lost = BackendError("refused")
    cluster = _Cluster(sight(1, 2), lost, lost, lost, sight(1, 2, 3))
    assert asyncio.run(_told(cluster, "broker 3 is back (unfenced)")) == [
        "the cluster cannot be asked: refused",
        "the cluster can be asked again",
        "broker 3 is back (unfenced)",
    ]


def test_without_a_controller_nothing_that_is_waited_for_is_there() -> None:
    """A dead broker is still shown as up then, and as the leader of its partitions."""
    old = sight(1, 2)._replace(stale="no controller that leads can be reached")
    cluster = _Cluster(old, old, sight(1, 2))
    assert asyncio.run(_told(cluster, "a controller leads again")) == [
        f"{old.stale}: leaders and ISRs are shown as the brokers last knew them",
        "a controller leads again",
    ]
    for awaited in (WaitGoal(frozenset({2}), online=False), WaitGoal(frozenset(), online=True)):
        assert awaited.reached(sight(1, 2)) and not awaited.reached(old)


def test_topics_that_may_not_be_seen_are_not_counted_as_online() -> None:
    awaited = WaitGoal(frozenset(), online=True)
    hidden = sight(1)._replace(unseen=True)
    assert awaited.outlook(hidden).endswith(
        "waiting for a leader for every partition of the topics that may be seen"
    )
    assert awaited.outlook(sight(1)).endswith("waiting for a leader for every partition")


def test_the_wait_ends_when_what_was_waited_for_is_there(call: Caller) -> None:
    ended = call.on(cluster_of(1))("ktriage", "watch", *ANY, "--broker-id", "1", "--interval-ms", "200")
    assert ended.status == 0, str(ended)
    now, end = ended.err.splitlines()
    assert now == "now: 3 brokers up, 1 partition without a leader; waiting for broker 1"
    assert end == "the wait is over: what was waited for is there"
