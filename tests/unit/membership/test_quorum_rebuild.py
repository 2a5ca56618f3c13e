"""``quorum rebuild PLAN`` on the directories that real Kafka 4.3.1 left: what is written, whole or not at all, by
the command and by the script, and the way back.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from backends.base.membership import ClusterNode, EveryAddress, Membership, ProcessRole
from backends.metadata_log.batch_writer import data_batch
from backends.metadata_log.copied_log import read_copy
from backends.metadata_log.quorum_copy import read_quorum_copy
from console.errors import NotDone
from console.jobs.quorum.quorum_rebuild import (
    apply_rebuild,
    save_rebuild,
    script_of,
    undo_rebuild,
)
from console.jobs.quorum.quorum_report import lost_lines
from console.last_healthy import recall, remember
from console.reading.quorum_state import lost, lost_at_named
from console.reading.remembered_voters import (
    MEMORY,
    applied_rebuild,
    forget_rebuild,
    lost_of_named,
    remember_rebuild,
)
from recovery.membership.quorum_rebuild import GivenVoter, RebuildPlan, from_json, to_json
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from recovery.model import Unknown, Why
from recovery.wording.lost_quorum_text import action, guide_lines, last_resort, warnings
from tests.unit.cli.command_process import command_line, invoke, typing
from tests.unit.membership.rebuilt_disks import (
    LOGS,
    METADATA,
    NO_OP,
    ORDERS,
    SEGMENT,
    UNKNOWN,
    HeldLock,
    as_leader,
    blank_controller,
    contents,
    disks,
    made,
    orders_id,
    partition_folder,
    silent,
)

__all__ = ["disks"]  # the fixture


def test_the_survivor_becomes_the_only_voter_in_an_epoch_that_nobody_can_have_been_in(disks: Path) -> None:
    before = contents(disks / "node-100" / METADATA)
    plan = made(disks)
    assert contents(disks / "node-100" / METADATA) == before
    apply_rebuild(plan, "a test", silent)
    copy = read_quorum_copy(disks / "node-100")
    assert [voter.key for voter in copy.voters.voters] == [plan.key]
    assert (copy.end, copy.epoch) == (53, 1_001)
    # One voter fewer in each record, as KIP-853 has it.
    assert [[key.id for key in voters.keys] for voters in plan.steps] == [[100, 102], [100]]
    after = contents(disks / "node-100" / METADATA)
    assert after[SEGMENT].startswith(before[SEGMENT])
    assert {name: data for name, data in after.items() if name != SEGMENT} == {
        name: data for name, data in before.items() if name != SEGMENT
    }
    assert contents(Path(plan.backup) / METADATA) == before
    lines = (Path(plan.backup) / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["what"] for line in lines] == ["applying", "applied"]


def test_a_copy_of_the_log_tells_where_the_rebuild_wrote(disks: Path) -> None:
    """Else a verdict by --metadata-dir would take the log before it for the whole truth."""
    assert read_copy(disks / "node-100", 0).history.rebuilt is None
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    rebuilt = read_copy(disks / "node-100", 0).history.rebuilt
    assert rebuilt is not None
    assert (rebuilt.offset, rebuilt.end, rebuilt.epoch) == (51, 53, 1_001)
    assert {voter.key.id for voter in rebuilt.gone} == {101, 102}


def test_a_torn_end_is_cut_off_and_named(disks: Path) -> None:
    log = disks / "node-100" / METADATA / SEGMENT
    whole = log.read_bytes()
    log.write_bytes(whole + data_batch(51, 1, 5, [b"half"])[:-3])
    plan = made(disks)
    assert (plan.whole_bytes, plan.cut_bytes) == (len(whole), len(data_batch(51, 1, 5, [b"half"])) - 3)
    apply_rebuild(plan, "a test", silent)
    copy = read_quorum_copy(disks / "node-100")
    assert (copy.defect, copy.end) == (None, 53)
    undo_rebuild(plan, "a test")
    assert log.read_bytes() == whole + data_batch(51, 1, 5, [b"half"])[:-3]


@pytest.mark.parametrize("node", [100, 103])
def test_a_blank_controller_gets_the_copy_of_a_broker(disks: Path, node: int) -> None:
    blank = blank_controller(disks, node)
    changed = {
        "source": disks / "node-1",
        "into": blank,
        "dead": (100, 101, 102),
        "voters": (GivenVoter(node, "", "127.0.0.1", 5),),
    }
    plan = made(disks, **changed)
    apply_rebuild(plan, "a test", silent)
    copy = read_quorum_copy(blank)
    assert [(v.key.id, v.key.directory_id) for v in copy.voters.voters] == [(node, "BBBBBBBBBBBBBBBBBBBBBg")]
    assert (copy.node, copy.end, copy.election) == (node, 52 + len(plan.steps), None)
    assert (
        (blank / METADATA / SEGMENT)
        .read_bytes()
        .startswith((disks / "node-1" / METADATA / SEGMENT).read_bytes())
    )
    undo_rebuild(plan, "a test")
    assert not (blank / METADATA).exists()
    assert not any(path.name.endswith(("part", "undone")) for path in blank.iterdir())


def test_a_second_apply_writes_nothing(disks: Path) -> None:
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    before = contents(disks / "node-100" / METADATA)
    assert apply_rebuild(plan, "a test", silent).files.already
    assert contents(disks / "node-100" / METADATA) == before


@pytest.mark.parametrize("into", [False, True])
def test_a_full_disk_leaves_the_log_as_it_was(
    disks: Path, monkeypatch: pytest.MonkeyPatch, into: bool
) -> None:
    changed: dict[str, Any] = {"into": blank_controller(disks), "dead": (100, 101, 102)} if into else {}
    plan = made(disks, **changed)
    target = Path(plan.target)
    before = contents(target) if target.exists() else None
    writes = iter(range(100))

    def full(descriptor: int) -> None:
        # The back-up fits, the new segment does not.
        if next(writes) >= (2 if into else 5):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(NotDone, match="No space left"):
            apply_rebuild(plan, "a test", silent)
    assert (contents(target) if target.exists() else None) == before
    apply_rebuild(plan, "a test", silent)
    assert read_quorum_copy(target).voters == plan.steps[-1]


def test_what_stands_after_a_failed_write_is_told_as_it_is(
    disks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last writes follow when the new log is in its place: then it is not as it was."""
    plan = made(disks)
    target = Path(plan.target)
    apply_rebuild(plan, "a test", silent)
    undo_rebuild(plan, "a test")  # the back-up stays, so that each run writes the same
    before = contents(target)
    told = []
    for last in range(40):
        writes = iter(range(100))

        def full(descriptor: int, last: int = last, writes: Iterator[int] = writes) -> None:
            if next(writes) >= last:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(NotDone, match="No space left") as failed:
                apply_rebuild(plan, "a test", silent)
        told.append("the log is as it was" in str(failed.value))
        assert told[-1] == (contents(target) == before), failed.value
        if not told[-1]:
            assert "the log is rebuilt" in str(failed.value)
            break
    assert set(told) == {True, False}
    assert apply_rebuild(plan, "a test", silent).files.already


def killed(work: Callable[[], object], left: int) -> bool:
    """Runs the work in a process of its own, which dies before its call number ``left`` that makes, renames or
    removes a file; whether it died.
    """
    child = os.fork()
    if not child:

        def dying(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes or event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chown"):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(dying)
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("into", [False, True])
def test_a_run_that_is_killed_leaves_the_old_log_or_the_new_one(disks: Path, into: bool) -> None:
    """Killed at each of its steps, from the beginning each time; the next run finishes the work."""
    changed: dict[str, Any] = {"into": blank_controller(disks), "dead": (100, 101, 102)} if into else {}
    plan = made(disks, **changed)
    target, backup = Path(plan.target), Path(plan.backup)
    shutil.copytree(target.parent, disks / "before")

    def afresh(state: Path) -> None:
        shutil.rmtree(target.parent)
        shutil.copytree(state, target.parent)
        shutil.rmtree(backup, ignore_errors=True)

    def apply() -> None:
        apply_rebuild(plan, "a test", silent)

    left = 1
    while killed(apply, left):
        if target.exists():
            copy = read_quorum_copy(target)
            assert (copy.voters, copy.end) in ((plan.old, 51), (plan.steps[-1], 51 + len(plan.steps))), left
        apply()
        assert read_quorum_copy(target).voters == plan.steps[-1]
        undo_rebuild(plan, "a test")
        afresh(disks / "before")
        left += 1
    assert left > 10
    left, before = 1, contents(disks / "before" / METADATA) if not into else None
    while killed(lambda: undo_rebuild(plan, "a test"), left):
        undo_rebuild(plan, "a test")
        assert (contents(target) if target.exists() else None) == before
        assert not any("ktriage" in path.name for path in target.parent.iterdir()), left
        afresh(disks / "before")
        apply()
        left += 1
    assert left > 3


def as_idle(plan: RebuildPlan) -> bytes:
    return as_leader(plan) + data_batch(plan.end + 1, plan.epoch + 1, 6, [NO_OP])


def as_registered(plan: RebuildPlan) -> bytes:
    own = RegisterControllerRecord(100, UNKNOWN, ())
    return as_leader(plan) + data_batch(plan.end + 1, plan.epoch + 1, 6, [encode(own)])


def as_broker(plan: RebuildPlan) -> bytes:
    broker = RegisterBrokerRecord(1, 53, UNKNOWN, (), None, True, False, ())
    return as_leader(plan) + data_batch(plan.end + 1, plan.epoch + 1, 6, [encode(broker)])


def as_torn(plan: RebuildPlan) -> bytes:
    """A controller that was killed while it wrote."""
    return as_leader(plan)[:9]


def ways_back(plan: RebuildPlan, directory: Path) -> Iterator[Callable[[], str]]:
    """The command and the script: why each refuses; "": it put the old log back."""
    script = directory / "rebuild.py"
    script.write_text(script_of(plan, []))

    def command() -> str:
        try:
            undo_rebuild(plan, "a test")
        except NotDone as refused:
            return str(refused)
        return ""

    def scripted() -> str:
        argv = [sys.executable, "-I", "-S", str(script), "--undo", "--yes", "--reason", "a test"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode == 0) == (not done.stderr), done
        return done.stderr.strip()

    yield from (command, scripted)


@pytest.mark.parametrize("goes_on", [as_leader, as_idle, as_registered, as_broker, as_torn])
def test_there_is_no_way_back_once_the_rebuilt_quorum_has_led(
    disks: Path, tmp_path: Path, goes_on: Callable[[RebuildPlan], bytes]
) -> None:
    """Brokers that run follow it without registering again: a second apply would use its epoch twice."""
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(goes_on(plan))
    before = contents(disks / "node-100" / METADATA)
    for undo in ways_back(plan, tmp_path):
        refused = undo()
        assert "\n" not in refused
        assert "the rebuilt quorum has led in epoch 1002: brokers may have followed it" in refused
        assert contents(disks / "node-100" / METADATA) == before


def test_a_leader_that_had_not_written_its_first_record_has_led_too(disks: Path, tmp_path: Path) -> None:
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    state = disks / "node-100" / METADATA / "quorum-state"
    state.write_text('{"leaderId":100,"leaderEpoch":1002,"votedId":100,"data_version":1}')
    for undo in ways_back(plan, tmp_path):
        assert "has led in epoch 1002" in undo()
    state.write_text('{"leaderId":-1,"leaderEpoch":1002,"votedId":100,"data_version":1}')
    for undo in ways_back(plan, tmp_path):
        assert not undo(), "nobody led"
        apply_rebuild(plan, "a test", silent)


@pytest.mark.parametrize("cleaned", [False, True])
def test_what_was_written_in_other_files_is_seen_too(disks: Path, tmp_path: Path, cleaned: bool) -> None:
    """The rebuilt log went on in a second segment; or its first one is in a snapshot, and is gone."""
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    directory = disks / "node-100" / METADATA
    (directory / f"{plan.end:020}.log").write_bytes(as_leader(plan))
    if cleaned:
        (directory / SEGMENT).rename(directory / f"{plan.end:020}-{plan.epoch:010}.checkpoint")
    for undo in ways_back(plan, tmp_path):
        assert "There is no way back" in undo()


def test_an_old_log_that_went_on_after_the_way_back_is_kept(disks: Path, tmp_path: Path) -> None:
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    undo_rebuild(plan, "a test")
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(data_batch(51, 1, 5, [NO_OP]))
    for undo in ways_back(plan, tmp_path):
        assert "There is no way back" in undo()


def test_a_back_up_that_cannot_be_written_is_named(disks: Path) -> None:
    (disks / "a-file").touch()
    plan = made(disks, backup=disks / "a-file" / "backup")
    before = contents(Path(plan.target))
    with pytest.raises(NotDone) as failed:
        apply_rebuild(plan, "a test", silent)
    assert str(failed.value).startswith(f"{plan.backup}: the back-up cannot be written (Not a directory)")
    assert "the log is as it was" in str(failed.value) and "--backup DIR with --from" in str(failed.value)
    assert contents(Path(plan.target)) == before


@pytest.mark.parametrize("into", [False, True])
def test_a_second_way_back_says_that_there_is_nothing_to_do(disks: Path, tmp_path: Path, into: bool) -> None:
    changed: dict[str, Any] = {"into": blank_controller(disks), "dead": (100, 101, 102)} if into else {}
    plan = made(disks, **changed)
    save_rebuild(plan, tmp_path / "plan.json")
    apply_rebuild(plan, "a test", silent)
    assert undo_rebuild(plan, "a test") is not None
    kept = sorted(path.name for path in Path(plan.backup).iterdir())
    again = invoke(
        tmp_path, "ktriage", "quorum", "rebuild", "plan.json", "--undo", "--yes", "--reason", "a test"
    )
    assert again.status == 0, again
    assert again.out == f"{plan.target}: is as it was before the rebuild already; nothing was written\n"
    assert sorted(path.name for path in Path(plan.backup).iterdir()) == kept


def test_there_is_nothing_to_undo_before(disks: Path) -> None:
    with pytest.raises(NotDone, match="nothing was applied"):
        undo_rebuild(made(disks), "a test")


@pytest.mark.parametrize("into", [False, True])
def test_the_script_writes_the_same_bytes_and_puts_them_back(disks: Path, tmp_path: Path, into: bool) -> None:
    partition_folder(disks, orders_id(disks), 9)
    changed: dict[str, Any] = {"into": blank_controller(disks), "dead": (100, 101, 102)} if into else {}
    plan = made(disks, **changed)
    target = Path(plan.target)
    before = contents(target) if target.exists() else None
    apply_rebuild(plan, "a test", silent)
    expected = contents(target)
    undo_rebuild(plan, "a test")
    shutil.rmtree(plan.backup)
    script = tmp_path / "rebuild.py"
    script.write_text(script_of(plan, ["the plan in words"]))

    def run(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-I", "-S", str(script), *words]
        return subprocess.run(argv, input=typed, capture_output=True, text=True, timeout=60, check=False)

    for answers in ("101\nyes\n", f"{' '.join(map(str, plan.dead))}\n\n"):
        refused = run(typed=answers)
        assert refused.returncode == 1 and "not confirmed" in refused.stderr, refused
    assert (contents(target) if target.exists() else None) == before
    done = run(typed=f"1\n{' '.join(map(str, plan.dead))}\ntwo disks gone\n")
    assert done.returncode == 0, done
    assert "the plan in words" in done.stdout
    assert contents(target) == expected
    again = run("--yes", "--reason", "a test")
    assert again.returncode == 0 and "nothing was written" in again.stdout, again
    undone = run("--undo", "--yes", "--reason", "a test")
    assert undone.returncode == 0, undone
    assert (contents(target) if target.exists() else None) == before
    lines = (Path(plan.backup) / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["what"] for line in lines] == ["applying", "applied", "undone"]


def test_the_script_without_anybody_to_ask_says_what_to_give_and_knows_who_reviewed_it(disks: Path) -> None:
    plan = made(disks, voters=(GivenVoter(100, "", "no-such-host.invalid", 1),))
    script = disks / "rebuild.py"
    script.write_text(script_of(plan, [], reviewed="reviewed by ada, digest 12"))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-I", "-S", str(script), *words]
        return subprocess.run(argv, input="", capture_output=True, text=True, timeout=60, check=False)

    alone = run()
    assert alone.returncode == 2 and "give --yes --reason TEXT; nothing was written" in alone.stderr, alone
    done = run("--yes", "--reason", "a test")
    assert done.returncode == 0, done
    assert "CHECK: no-such-host.invalid, where the new voter listens, does not resolve" in done.stderr
    lines = (Path(plan.backup) / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["reviewed"] for line in lines] == ["reviewed by ada, digest 12"] * 2
    assert run("--undo", "--yes", "--reason", "a test").returncode == 0
    again = run("--undo", "--yes", "--reason", "a test")
    assert again.returncode == 0 and "nothing was written" in again.stdout, again


def test_the_script_refuses_what_the_command_refuses(disks: Path) -> None:
    plan = made(disks)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        plan = made(disks, voters=(GivenVoter(100, "", "127.0.0.1", listening.getsockname()[1]),))
        script = script_of(plan, [])

        def run() -> str:
            argv = [sys.executable, "-I", "-S", "-", "--yes", "--reason", "a test"]
            done = subprocess.run(argv, input=script, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1, done
            return done.stderr

        assert "(controller 100): stop it first" in run()
    (disks / "node-100" / ".lock").touch()
    with HeldLock(disks / "node-100" / ".lock"):
        assert "its node runs" in run()
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(b"x")
    assert "changed since the plan was made" in run()
    shutil.rmtree(disks / "node-100")
    shutil.copytree(LOGS / "node-101", disks / "node-100")
    assert "apply the plan on the host that has it" in run()


def test_the_script_is_python_3_8_and_imports_the_standard_library_only(disks: Path) -> None:
    tree = ast.parse(script_of(made(disks), []), feature_version=(3, 8))
    imported = {
        (node.module or "").partition(".")[0] if isinstance(node, ast.ImportFrom) else name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported <= sys.stdlib_module_names


def test_the_command_asks_for_each_dead_voter_and_says_every_reason(disks: Path, tmp_path: Path) -> None:
    def command(*words: str) -> Any:
        return invoke(tmp_path, "ktriage", "quorum", "rebuild", *words)

    making = ["--from", str(disks / "node-100"), "--voter", "100@127.0.0.1:1", "--plan-out", "plan.json"]
    ended = command(*making)
    assert ended.status == 1
    assert "voters 101, 102 are not named with --dead" in ended.err
    assert "the disks of brokers 1, 2 were not scanned" in ended.err
    named = ["--dead", "101", "--dead", "102", "--unscanned", "1", "--unscanned", "2"]
    planned = command(*making, *named)
    assert planned.status == 0, planned
    assert "next: ktriage quorum rebuild plan.json --rehearse" in planned.err
    assert "100,101,102 → 100,102 → 100" in planned.out
    assert command("plan.json").status == 2  # no terminal
    assert command("plan.json", "--dead", "101").status == 2
    applied = command("plan.json", "--yes", "--reason", "a test")
    assert applied.status == 0, applied
    assert "sha256" in applied.out
    assert "controller.quorum.bootstrap.servers must name 127.0.0.1:1" in applied.out
    assert "Move __cluster_metadata-0 out of the log dirs of the old voters" in applied.out
    (remembered,) = (tmp_path / "state").rglob("rebuild.json")
    assert json.loads(remembered.read_text())["node"] == 100
    undone = command("plan.json", "--undo", "--yes", "--reason", "a test", "--output", "json")
    assert undone.status == 0, undone
    assert not [*(tmp_path / "state").rglob("rebuild.json"), *(tmp_path / "state").rglob("quorum.json")]
    # Carried out by the script, on another host: whoever has the plan can make it known here.
    path = tmp_path / "plan.json"
    path.write_text(to_json(replace(from_json(path.read_text()), time_ms=1_700_000_000_000)))
    known = command("plan.json", "--remember")
    assert known.status == 0 and "100 is the only voter, and 101 and 102 must not run" in known.err, known
    (remembered,) = (tmp_path / "state").rglob("quorum.json")
    assert [voter["id"] for voter in json.loads(remembered.read_text())["replaced"]] == [101, 102]
    # The time of its records, not of the moment at which it was made known.
    assert json.loads(remembered.read_text())["rebuiltAt"] == "2023-11-14T22:13:20+00:00"
    forgotten = command("plan.json", "--remember", "--undo")
    assert forgotten.status == 0, forgotten
    assert not [*(tmp_path / "state").rglob("rebuild.json"), *(tmp_path / "state").rglob("quorum.json")]


async def test_between_apply_and_start_the_new_voter_is_to_be_started_and_no_old_one(
    disks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """101 and 102 are a majority of the old voters: started together they lead, and brokers follow them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    plan, earlier = made(disks), {"format": 1, "at": "then", "leaderEpoch": 1, "voters": []}
    remember(plan.cluster_id, MEMORY, earlier)
    for _ in range(2):  # a second apply writes nothing, and forgets nothing
        remember_rebuild(plan, tmp_path / "plan.json", "a test")
    asked: list[tuple[str, int]] = []

    class NobodyAnswers:
        async def every_address(self, further: Iterable[tuple[str, int]] = ()) -> EveryAddress:
            asked.extend(further)
            refused = Unknown(Why.NOT_ANSWERED, "connection refused")
            nodes = (ClusterNode(-1, ProcessRole.CONTROLLER, f"{at[0]}:{at[1]}", refused) for at in asked)
            return EveryAddress((), tuple(nodes), {})

    # The command of the first step asks that controller alone, which tells no cluster id.
    membership = cast("Membership", NobodyAnswers())
    asked.append(("127.0.0.1", 27644))
    (named, *_), by_name = (await lost_of_named(membership)).sentences, await lost_at_named(membership)
    assert named == "controller 100 is not reached" and "Start controller 100" not in " ".join(
        by_name.sentences
    )
    asked.clear()
    saved = recall(plan.cluster_id, MEMORY)
    without = await lost(cast("Membership", NobodyAnswers()), plan.cluster_id, saved)
    assert {endpoint.port for voter in plan.other_voters for endpoint in voter.endpoints} <= {
        p for _, p in asked
    }
    assert action(without).startswith("Start controller 100 with its disk: the rebuild of 20"), action(
        without
    )
    never = "Never start 101 or 102 with the metadata logs that the rebuild replaced"
    for told in (warnings(without), guide_lines(without), lost_lines(without)):
        text = "\n".join(told)
        assert never in text and "othing is lost" not in text and "--into" not in text, text
    assert f"ktriage quorum rebuild {tmp_path}/plan.json --undo" in "\n".join(lost_lines(without))
    assert last_resort(without) == ()
    assert "made controller 100 the only voter; reason: a test" in applied_rebuild(plan.cluster_id)
    forget_rebuild(plan)
    assert recall(plan.cluster_id, MEMORY) == earlier and applied_rebuild(plan.cluster_id) == ""


@pytest.mark.parametrize(
    ("answer", "status", "end"),
    [
        ("101\nyes", 1, 51),
        ("\n", 1, 51),
        ("101, 102\n", 1, 51),
        ("101, 102\ntwo disks gone", 0, 53),
        ("101\n102 101\ntwo disks gone", 0, 53),
    ],
)
def test_at_a_terminal_each_dead_voter_is_typed_and_a_reason_and_who_mistypes_is_asked_once_more(
    disks: Path, tmp_path: Path, answer: str, status: int, end: int
) -> None:
    save_rebuild(made(disks, voters=(GivenVoter(100, "", "127.0.0.1", 1),)), tmp_path / "plan.json")
    ended = typing(tmp_path, command_line("ktriage", "quorum", "rebuild", "plan.json"), answer)
    assert ended.status == status, ended
    assert "never start again with the metadata logs they had" in ended.err
    assert ("101 102 was expected" in ended.err) == (not answer.startswith("101, 102")), ended
    journals = [path.read_text() for path in tmp_path.rglob("journal.jsonl")]
    assert any("two disks gone" in journal for journal in journals) == (not status), journals
    assert read_quorum_copy(disks / "node-100").end == end


def test_the_question_names_the_folders_that_become_strays(disks: Path, tmp_path: Path) -> None:
    partition_folder(disks, UNKNOWN, 7)
    plan = made(disks, voters=(GivenVoter(100, "", "127.0.0.1", 1),), accept_strays=True)
    save_rebuild(plan, tmp_path / "plan.json")
    ended = typing(tmp_path, command_line("ktriage", "quorum", "rebuild", "plan.json"), "101 102\nok")
    assert ended.status == 0, ended
    assert f"brokers will set 1 folder aside as strays ({ORDERS}-0). To go on, type the node ids" in ended.err
