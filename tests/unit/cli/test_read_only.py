"""In read-only nothing that changes a cluster leaves, whatever a command does, or forgets."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import io
from pathlib import Path

import pytest

from backends.base.read_only import READ_ONLY, ReadOnlyBackend
from console import backends
from console.change.registry import ACTIONS, COMMANDS, Need
from console.cli.base.quorum_run import read_quorum
from console.cli.base.run import Run
from console.journal.change_kinds import KINDS, ORDERS_ROOM, REPLACE, Left, kind_of
from console.output.screen import Screen
from console.program import Program
from console.signals import Supervisor
from console.target import resolve
from tests.unit.cli.command_process import Caller
from tests.unit.recording_backend import (
    BACKEND_CHANGES,
    MEMBERSHIP_CHANGES,
    WRAPPERS,
    Noting,
    calls_everything,
    calls_of,
    noting,
)
from tests.unit.simulator.operators import backend as simulated

AGREED = ("--yes", "--reason", "a test")
UNCLEAN = ("--election-type", "unclean", "--all-topic-partitions", "--yes")
LONGEST = ("--election-type", "longest-log", "--all-topic-partitions", "--yes")
READ_ONLY_PROFILE = "clusters: {production: {bootstrap: 'kafka:9092', read-only: true}}"

LINES: dict[str, tuple[tuple[str, ...], ...]] = {
    "check": ((),),
    "readiness": ((),),
    "info": ((),),
    "status": ((),),
    "replicas": ((),),
    "plan": (("new.json",),),
    "review": (("plan.json",),),
    "apply": (("plan.json", *AGREED),),
    "verify": (("plan.json",),),
    "rescue": (("read", "plan.json", "--to", "saved"),),
    "restore": (("saved", "--to-source", *AGREED),),
    "groups": (("show", "plan.json"), ("fix", "plan.json", *AGREED), ("fix", "--undo", *AGREED)),
    "transactions": (("show", "plan.json"), ("fix", "plan.json", *AGREED)),
    "heal": (
        ("show", "plan.json", "--gone-for-good"),
        ("apply", "plan.json", "--gone-for-good", *AGREED),
        ("undo", *AGREED),
        ("unregister", "--broker-id", "1", "--gone-for-good", *AGREED),
    ),
    "recover": (("--all-offline-partitions", "--automated-recovery"),),
    "elect": (
        UNCLEAN,
        LONGEST,
        ("--election-type", "preferred", "--all-topic-partitions"),
        ("--election-type", "designated", "--path-to-json-file", "plan.json"),
    ),
    "resume": ((), ("--plan", "plan.json"), ("--give-up",)),
    "log-dirs": ((),),
    "disk": (("script",),),
    "quorum": (
        ("status",),
        ("replication",),
        ("upgrade", *AGREED),
        ("add", "100", *AGREED),
        ("remove", "100", *AGREED),
        ("replace", "100", "--why", "disk", *AGREED),
    ),
    "simulate": (("list",),),
    "gameday": (("prepare", "friday.yaml"),),
    "snapshot": (("--out", "snapshots"),),
    "pipeline": (("show", "--in", "snapshots"),),
    "timeline": ((),),
    "metadata-log": (("copy", "--to", "copied"),),
    "journal": ((),),
    "report": ((),),
    "handover": ((),),
    "bundle": (("--to", "copied.ktriage"),),
    "watch": (("--broker-id", "1"),),
}
"""Every command of the registry, with what makes it change the cluster where it can."""

READING_VERBS = ("status", "replication", "read", "show")


@pytest.fixture
def cluster(call: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Noting:
    """Read-only by its profile, named production; a plan that could be applied lies beside."""
    settings = tmp_path / "config" / "ktriage" / "clusters.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(READ_ONLY_PROFILE, encoding="utf-8")
    found = noting(simulated("last-replica-standing"))
    call.on(found)
    monkeypatch.setattr(backends, "quorum_only", lambda _target, _say: found)
    planned = call("ktriage", "plan", "--cluster", "production", "--strategy", "aggressive", "plan.json")
    assert planned.status == 0, planned
    return found


@pytest.mark.parametrize(
    ("name", "given"), [(name, given) for name, lines in LINES.items() for given in lines]
)
def test_no_command_sends_a_change_to_a_read_only_cluster(
    call: Caller, cluster: Noting, name: str, given: tuple[str, ...]
) -> None:
    target = () if name in ("info", "simulate", "pipeline", "disk") else ("--cluster", "production")
    ended = call("ktriage", name, *given, *target)
    assert cluster.sent == [], str(ended)
    if COMMANDS[name].changes and given[:1] not in [(verb,) for verb in READING_VERBS]:
        assert ended.status == 2, str(ended)
        assert "this would change the cluster, and the profile 'production'" in ended.err


def test_every_command_of_the_registry_is_tried() -> None:
    assert set(LINES) == set(COMMANDS)


def test_resume_can_finish_every_kind_of_change_that_names_how() -> None:
    for room in {kind.finished_by for kind in KINDS.values() if kind.finished_by}:
        assert inspect.iscoroutinefunction(importlib.import_module(f"console.jobs.{room}").finish), room
    work = {kind.action for kind in KINDS.values() if kind.left is Left.WORK}
    elsewhere = {action for action in work if kind_of(action).finished_by in ("", ORDERS_ROOM)}
    assert elsewhere == {REPLACE}, "work of several requests is not finished by a look at the orders"


def test_every_kind_of_change_is_sent_by_an_action_of_the_registry() -> None:
    """So read-only and the keys know of it."""
    sent = {name for action in ACTIONS for name in action.sends}
    assert sent == {kind.action for kind in KINDS.values() if kind.rights}


def test_what_asks_before_it_sends_changes_the_cluster() -> None:
    assert all(action.changes for action in ACTIONS if Need.SENDS in action.needs)


def a_run() -> Run:
    program = Program(
        "ktriage", (), Screen(lambda: 0.0, io.StringIO(), io.StringIO()), Supervisor(lambda _signum: "")
    )
    return Run(program, resolve("kafka:9092", None, None, None), json=False)


def test_a_command_that_only_reads_cannot_send_a_change_if_it_tries(cluster: Noting) -> None:
    """A live target, whose profile forbids nothing."""
    refused = a_run().read(lambda backend, _stop: calls_everything(backend))
    assert refused == [f"{name}: {READ_ONLY}" for name in (*BACKEND_CHANGES, *MEMBERSHIP_CHANGES)]
    assert cluster.sent == []


def test_a_quorum_command_that_only_reads_cannot_send_a_change_if_it_tries(cluster: Noting) -> None:
    class Quorum:
        def __init__(self, membership: object) -> None:
            self.membership = membership

    async def job(membership: object, _stop: object) -> list[str]:
        return await calls_everything(Quorum(membership))

    refused = read_quorum(a_run(), job)
    assert refused[-3:] == [f"{name}: {READ_ONLY}" for name in MEMBERSHIP_CHANGES]
    assert cluster.sent == []


def test_a_command_that_the_registry_has_as_reading_is_handed_no_cluster_to_change(cluster: Noting) -> None:
    with pytest.raises(AssertionError, match="says so in the registry"):
        a_run().refuse_if_read_only()


@pytest.mark.parametrize(("protocol", "wrapper", "changes"), WRAPPERS)
def test_every_call_of_the_protocols_is_passed_on_or_refused(
    protocol: type, wrapper: type, changes: tuple[str, ...]
) -> None:
    """A call that the protocol gets later has to be told apart too."""
    assert calls_of(protocol) <= calls_of(wrapper)
    assert set(changes) <= calls_of(protocol)


def test_the_wrapper_passes_questions_on() -> None:
    backend = simulated("last-replica-standing")
    reading = ReadOnlyBackend(backend)
    assert asyncio.run(reading.open()).cluster_id == backend.cluster_id
    assert reading.title == backend.title
    assert [s.tp.topic for s in asyncio.run(reading.partitions(("payments",))).states] == ["payments"]
