"""``ktriage simulate serve`` as an operator uses it: one terminal serves, another steps it and breaks things."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.command_server import Ended
from tests.unit.cli.command_process import command_line, environment, invoke

SCENARIO = str(Path(__file__).parent / "scenarios" / "one-dead-of-four.yaml")


class Terminal:
    """Commands with settings and records in one directory."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *words: str, name: str = "ktriage") -> Ended:
        return invoke(self.home, name, *words)

    @contextmanager
    def serving(self, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
        """A process that serves, and what its ready line says."""
        process = subprocess.Popen(
            command_line("ktriage", "simulate", "serve", *words, "--port-base", "0", "--output", "json"),
            env=environment(self.home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None and process.stderr is not None
        try:
            lines: list[str] = []
            while not lines or lines[-1] != "}\n":
                lines.append(process.stdout.readline())
                assert lines[-1], process.stderr.read()
            yield process, json.loads("".join(lines))
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_time_that_stands_still_is_stepped_and_faults_are_made_from_another_terminal(
    terminal: Terminal,
) -> None:
    with terminal.serving(SCENARIO, "--speed", "0") as (process, ready):
        at = ("--port-base", str(ready["portBase"]))
        server = ("--bootstrap-server", ready["bootstrapServers"])
        assert "6 offline" in terminal.run("status", *server).out
        started = terminal.run("simulate", "fault", "start", "broker-3", *at)
        assert started.status == 0
        stepped = terminal.run("simulate", "step", "5", *at, "--output", "json")
        assert json.loads(stepped.out)["offline"] == 0
        assert "0 offline" in terminal.run("status", *server).out
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 128 + signal.SIGTERM
        assert "Traceback" not in err
    assert terminal.run("simulate", "step", "1", *at).status == 2


def test_what_cannot_be_done_is_one_line_and_nothing_happens(terminal: Terminal) -> None:
    assert terminal.run("simulate", "serve").status == 2
    assert "is not a served API" in terminal.run("simulate", "serve", SCENARIO, "--without", "Nonsense").err
    with terminal.serving(SCENARIO, "--speed", "0") as (_, ready):
        at = ("--port-base", str(ready["portBase"]))
        for words in (
            ("fault", "kill", "broker-9"),
            ("fault", "explode", "broker-1"),
            ("fault", "replace-disk"),
            ("fault", "kill", "broker-1", "colour=red"),
            ("step", "soon"),
            ("step", "-1"),
        ):
            refused = terminal.run("simulate", *words, *at)
            assert (refused.status, refused.out) == (2, ""), words
            assert len(refused.err.splitlines()) == 1 and refused.err.startswith("ktriage"), refused.err
        state = json.loads(terminal.run("simulate", "step", "0", *at, "--output", "json").out)
        assert "broker-1" in state["running"] and state["offline"] == 6
        taken = terminal.run("simulate", "serve", SCENARIO, *at)
        assert taken.status == 2 and "give another --port-base" in taken.err


@pytest.mark.parametrize("without", ["", "GetReplicaLogInfo,ElectLeaders:3"], ids=["native", "emulated"])
def test_offline_partitions_are_recovered_and_every_order_is_put_back(
    terminal: Terminal, without: str
) -> None:
    with terminal.serving(SCENARIO, "--without", without) as (_, ready):
        server = ("--bootstrap-server", ready["bootstrapServers"])
        done = terminal.run(
            *("--all-offline-partitions", "--automated-recovery", "--output", "json"),
            *("--recovery-duration-ms", "2000"),
            *server,
            name="kafka-unclean-recovery",
        )
        told = json.loads(done.out)
        assert done.status == 0, done.err
        assert {row["outcome"] for row in told["elections"]} == {"elected"}
        assert {row["leader"] for row in told["elections"]} == {1, 2} & {
            r["leader"] for r in told["elections"]
        }
        controllers = ("--bootstrap-controller", ready["bootstrapControllers"])
        timeline = json.loads(terminal.run("timeline", *controllers, "--output", "json").out)
        events = [event for event in timeline["events"] if event["kind"] != "partition created"]
        ours = {event["kind"] for event in events if event["ours"] == len(event["partitions"]) > 0}
        assert ours == ({"unclean election", "replica order"} if without else {"unclean election"})
        assert all(event["ours"] == 0 for event in events if event["kind"] in ("offline", "ISR shrank"))
        again = terminal.run("status", *server, "--output", "json")
        partitions = json.loads(again.out)["partitions"]
        orders = {tuple(row["replicas"]) for row in partitions if row["topic"] == "orders"}
        assert orders == {(1, 2, 3), (2, 3, 1), (3, 1, 2)}
        assert (
            "native" in json.dumps(told["contacts"])
            if not without
            else "emulated" in json.dumps(told["contacts"])
        )


def test_each_refusal_can_be_seen_by_a_user_who_lacks_the_permission(terminal: Terminal) -> None:
    users = terminal.home / "users.yaml"
    users.write_text(
        'alice: {password: wonder}\nbob: {password: builder, denied: ["ALTER cluster", "CLUSTER_ACTION cluster"]}\n'
    )
    for name, password in (("alice", "wonder"), ("bob", "builder"), ("eve", "nothing")):
        (terminal.home / f"{name}.properties").write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{name}" password="{password}";\n'
        )
    with terminal.serving(SCENARIO, "--users", str(users)) as (_, ready):
        server = ("--bootstrap-server", ready["bootstrapServers"])

        def recover(name: str) -> Ended:
            config = ("--command-config", str(terminal.home / f"{name}.properties"))
            return terminal.run(
                *("--all-offline-partitions", "--automated-recovery", "--recovery-election-attempts", "0"),
                *(*server, *config, "--recovery-duration-ms", "2000"),
                name="kafka-unclean-recovery",
            )

        stranger = recover("eve")
        assert stranger.status == 3 and "authentication failed" in stranger.err
        lacking = recover("bob")
        assert lacking.status == 1 and "ALTER" in lacking.out + lacking.err
        allowed = recover("alice")
        assert allowed.status == 0, allowed.out + allowed.err


@pytest.mark.long
def test_each_time_it_is_served_it_is_another_cluster_unless_its_id_is_given(terminal: Terminal) -> None:
    given = "MkU3OEVBNTcwNTJENDM2Qg"
    with (
        terminal.serving(SCENARIO, "--speed", "0") as (_, one),
        terminal.serving(SCENARIO, "--speed", "0") as (_, other),
        terminal.serving(SCENARIO, "--speed", "0", "--cluster-id", given) as (_, named),
    ):
        assert len({one["clusterId"], other["clusterId"], given}) == 3
        assert named["clusterId"] == given
        seen = terminal.run("status", "--bootstrap-server", one["bootstrapServers"], "--output", "json")
        assert one["clusterId"] in seen.out


@pytest.mark.long
def test_a_review_says_which_clusters_get_the_requests_that_it_shows(terminal: Terminal) -> None:
    plan = str(terminal.home / "plan.json")
    with terminal.serving(SCENARIO) as (_, ready):
        server = ("--bootstrap-server", ready["bootstrapServers"])
        made = terminal.run("plan", *server, plan, "--strategy", "aggressive")
        assert made.status in (0, 1), made.err
        unnamed, named = terminal.run("review", plan), terminal.run("review", plan, *server)
    assert "requests that will be sent on a cluster without native elections" in unnamed.out
    assert "requests that will be sent, each batch" in named.out
    assert "AlterPartitionReassignments" in unnamed.out and "AlterPartitionReassignments" not in named.out


def test_the_control_socket_is_for_this_user_only(terminal: Terminal) -> None:
    with terminal.serving(SCENARIO, "--speed", "0") as (_, ready):
        socket = terminal.home / "state" / "ktriage" / "served" / f"{ready['portBase']}.sock"
        assert socket.stat().st_mode & 0o077 == 0
