"""``ktriage restore`` and what a rescue directory shows: what the election cut off is written back once."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from backends.base.errors import BackendError
from backends.live.record_writer import LiveRecordWriter
from console.new_files import locked
from console.signals import Stopped
from recovery.model import TopicPartition
from tests.unit.cli.command_process import Caller
from tests.unit.cli.stale_long_tail import AGREED, TAIL


def log_ends(call: Caller, topic: str) -> set[int]:
    told = json.loads(call("ktriage", "replicas", "--topic", topic, *TAIL, "--output", "json").out)
    return {log["logEndOffset"] for one in told["partitions"] for log in one["logs"] if "logEndOffset" in log}


@pytest.mark.parametrize("target", [("--to-source",), ("--to-topic", "kept")])
def test_what_was_cut_off_is_written_back_once(elected: Caller, target: tuple[str, ...]) -> None:
    words = ("restore", "saved", *target, *AGREED, *TAIL)
    ended = elected("ktriage", *words)
    assert ended.status == 0 and "500 records written back; 500 counted" in ended.out, ended
    told = " ".join(elected("ktriage", "handover", *TAIL).out.split())
    assert "ended with status 0: 500 records written back" in told, "who takes over reads what was done"
    again = elected("ktriage", *words)
    assert again.status == 0 and "nothing was sent" in again.out, again
    assert "everything was written back by an earlier run" in again.out and "RECORDS" not in again.out
    topic, end = ("kept", 500) if "kept" in target else ("payments", 1800)
    assert end in log_ends(elected, topic) and max(log_ends(elected, topic)) == end


def test_a_killed_write_back_goes_on_and_nothing_stands_twice(elected: Caller, tmp_path: Path) -> None:
    """The last batches were appended, and the run died before it could note them."""
    words = ("restore", "saved", "--to-source", *AGREED, *TAIL)
    assert elected("ktriage", *words).status == 0
    (journal,) = (tmp_path / "saved").glob("restore-*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    again = elected("ktriage", *words)
    assert again.status == 0 and "500 records written back; 500 counted" in again.out, again
    assert max(log_ends(elected, "payments")) == 1800


def test_two_runs_do_not_write_the_same_rescue_back_at_once(elected: Caller, tmp_path: Path) -> None:
    """The other one has another state directory, so its lock of the cluster is another."""
    words = ("restore", "saved", "--to-source", *AGREED, *TAIL)
    other = locked(tmp_path / "saved")
    ended = elected("ktriage", *words)
    assert ended.status == 2 and "saved: another run is writing to it" in ended.err, ended
    assert max(log_ends(elected, "payments")) == 1300
    os.close(other)
    assert elected("ktriage", *words).status == 0
    assert max(log_ends(elected, "payments")) == 1800


def test_what_a_killed_run_wrote_last_is_counted_when_it_is_run_again(
    elected: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every record was written, and the run died before it counted them."""

    async def dies(*_: object) -> None:
        raise Stopped(signal.SIGKILL, in_flight=False)

    words = ("restore", "saved", "--to-source", *AGREED, *TAIL)
    with monkeypatch.context() as first:
        first.setattr("console.jobs.rescue.restore_records.count_written", dies)
        assert elected("ktriage", *words).status != 0
    again = elected("ktriage", *words)
    assert (
        again.status == 0 and "500 counted in the target now" in again.out and "nothing was sent" in again.out
    )

    told = json.loads(elected("ktriage", *words, "--output", "json").out)
    assert told["counted"] == [{"topic": "payments", "partition": 0, "records": 500}] and not told["sent"]

    async def too_many(*_: object) -> dict[TopicPartition, int]:
        return {TopicPartition("payments", 0): 600}

    monkeypatch.setattr("console.jobs.rescue.restore_records.count_written", too_many)
    twice = elected("ktriage", *words)
    assert twice.status == 1 and "500 were written: 100 stand there twice" in twice.err, twice


def open_items(call: Caller) -> tuple[str, list[str]]:
    """What the report has as still open, and the commands that come next."""
    told = json.loads(call("ktriage", "report", *TAIL, "--output", "json").out)
    return "\n".join(told["open"]), told["next"]


def test_resume_and_the_report_tell_of_a_killed_write_back_until_it_is_finished(
    elected: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies with all records sent and before it wrote down that they are."""

    class Killed(BaseException):
        pass

    async def killed(*_: object) -> None:
        raise Killed

    words = ("restore", "saved", "--to-source", *AGREED, *TAIL)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("console.jobs.rescue.restore_records.count_written", killed)
        elected("ktriage", *words)
    finishing = f"ktriage restore {tmp_path}/saved --to-source {' '.join(TAIL)}"
    resumed = elected("ktriage", "resume", *TAIL)
    assert resumed.status == 1 and f"next: {finishing}" in resumed.err, resumed
    assert "500 rescued records of" in resumed.out and "1 restore of rescued records still" in resumed.out
    still_open, commands = open_items(elected)
    assert "500 rescued records" in still_open and any(finishing[:50] in one for one in commands)
    assert finishing in elected("ktriage", "status", *TAIL).err
    assert "500 rescued records" in elected("ktriage", "handover", *TAIL).out
    assert "restore-records: 500 of" in elected("ktriage", "journal", *TAIL).out
    assert "nothing was sent" in elected("ktriage", *words).out
    assert elected("ktriage", "resume", *TAIL).status == 0
    assert "rescued records" not in open_items(elected)[0]


def test_a_killed_write_back_whose_rescue_is_gone_is_closed(elected: Caller, tmp_path: Path) -> None:
    assert elected("ktriage", "restore", "saved", "--to-source", *AGREED, *TAIL).status == 0
    (run,) = [path for path in (tmp_path / "state").rglob("*.jsonl") if "restore-records" in path.read_text()]
    lines = run.read_text().splitlines(keepends=True)
    run.write_text("".join(line for line in lines if json.loads(line)["kind"] not in ("after", "end")))
    (tmp_path / "saved").rename(tmp_path / "away")
    resumed = elected("ktriage", "resume", *TAIL)
    assert resumed.status == 0 and "not there any more" in resumed.err, resumed
    assert "rescued records" not in open_items(elected)[0]


@pytest.fixture
def saved_twice(planned: Caller) -> Caller:
    """The same records in two rescues; those of the first are in the source again."""
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "first", *TAIL).status == 0
    assert planned("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *TAIL).status == 0
    assert planned("ktriage", "restore", "saved", "--to-source", *AGREED, *TAIL).status == 0
    return planned


@pytest.mark.long
def test_the_same_records_of_another_rescue_are_written_again_only_when_that_is_wanted(
    saved_twice: Caller, tmp_path: Path
) -> None:
    words = ("restore", "first", "--to-source")
    told = f"500 offsets of this rescue were written to the same target before, from {tmp_path}/saved"
    dry = saved_twice("ktriage", *words, "--dry-run", *TAIL)
    assert dry.status == 0 and told in dry.out, dry
    refused = saved_twice("ktriage", *words, *AGREED, *TAIL)
    assert refused.status == 1 and told in refused.err and "give --again" in refused.err, refused
    assert max(log_ends(saved_twice, "payments")) == 1800
    assert saved_twice("ktriage", *words, "--again", *AGREED, *TAIL).status == 0
    assert max(log_ends(saved_twice, "payments")) == 2300
    reported = saved_twice("ktriage", "report", *TAIL).out
    assert "saved: 500 offsets. Restored: 1,000 records." in reported
    assert "The same records were written to payments-0 more than once: 500 offsets" in reported
    assert "500 were saved before, and all of these written back." in reported
    elsewhere = saved_twice("ktriage", "restore", "first", "--to-topic", "kept", *AGREED, *TAIL)
    assert elsewhere.status == 0, "no restore wrote to that topic"
    told = json.loads(saved_twice("ktriage", "report", *TAIL, "--output", "json").out)
    restores = [(Path(one["directory"]).name, one["target"], one["records"]) for one in told["restores"]]
    assert restores == [("saved", "source", 500), ("first", "source", 500), ("first", "kept", 500)]
    assert len(told["rescues"]) == 2 and len(told["repeated"]) == 1


def test_chosen_records_are_written_back_once_and_go_on_after_a_kill(elected: Caller, tmp_path: Path) -> None:
    words = ("restore", "saved", "--to-source", "--after-offset", "1299", "--mark", *AGREED, *TAIL)
    assert elected("ktriage", *words).status == 0
    (journal,) = (tmp_path / "saved").glob("restore-source~committed-*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    again = elected("ktriage", *words)
    assert again.status == 0 and "200 records written back; 200 counted" in again.out, again
    assert max(log_ends(elected, "payments")) == 1500
    dry = elected("ktriage", "restore", "saved", "--to-source", "--dry-run", "--key", ".*", *TAIL)
    assert "200 records were written to the same target with other options" in dry.out
    assert "next: ktriage restore saved --to-source --key '.*'" in dry.err


def test_a_dry_run_sends_nothing(elected: Caller) -> None:
    ended = elected("ktriage", "restore", "saved", "--to-source", "--dry-run", *TAIL)
    assert ended.status == 0 and "500 records of 1 branch to be written back" in ended.out
    assert max(log_ends(elected, "payments")) == 1300


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "either --to-topic NAME or --to-source"),
        (("--to-topic", "x", "--to-source"), "either --to-topic NAME or --to-source"),
        (("--to-topic", "payments"), "the records come from this topic"),
        (("--to-topic", "__consumer_offsets"), "it is internal to Kafka"),
        (("--to-topic", "a b/c"), "a topic's name has at most 249 letters"),
        (("--to-source", "--topic", "other"), "holds no branch of other"),
        (("--to-source", "--key", "["), "is no regular expression"),
        (("--to-source", "--from", "noon"), "--from 'noon'"),
        (("--to-topic", "x", "--only-keys-missing"), "give it with --to-source"),
    ],
)
def test_a_target_that_makes_no_sense_is_one_line(elected: Caller, given: tuple[str, ...], said: str) -> None:
    ended = elected("ktriage", "restore", "saved", *given, *AGREED, *TAIL)
    assert ended.status == 2 and said in ended.err and len(ended.err.splitlines()) == 1


def test_before_an_election_nothing_can_be_written_to_the_source(planned: Caller) -> None:
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL).status == 0
    ended = planned("ktriage", "restore", "saved", "--to-source", *AGREED, *TAIL)
    assert ended.status == 2 and "it has no leader yet" in ended.err


def test_a_changed_segment_is_not_written_back(elected: Caller, tmp_path: Path) -> None:
    (segment,) = (tmp_path / "saved").glob("*/*/*.log")
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    ended = elected("ktriage", "restore", "saved", "--to-source", *AGREED, *TAIL)
    assert ended.status == 2 and "checksum" in ended.err
    assert max(log_ends(elected, "payments")) == 1300


def test_what_was_read_can_be_looked_at_without_a_cluster(elected: Caller) -> None:
    ended = elected("ktriage", "rescue", "show", "saved", "--records", "2", "--output", "json")
    (branch,) = json.loads(ended.out)["branches"]
    assert ended.status == 0 and (branch["records"], branch["problem"]) == (500, None)
    assert [one["offset"] for one in branch["firstRecords"]] == [1000, 1001]
    assert branch["firstRecords"][0]["value"] == "record 1000 of epoch 0"


def test_times_of_a_simulated_cluster_are_not_of_1970(elected: Caller) -> None:
    shown = elected("ktriage", "rescue", "show", "saved", "--records", "1").out
    assert "T+" in shown and "1970-" not in shown


@pytest.mark.parametrize("left", ["half", "nothing"])
def test_of_a_damaged_rescue_the_bytes_that_are_there_are_told_and_what_to_do(
    elected: Caller, tmp_path: Path, left: str
) -> None:
    (segment,) = (tmp_path / "saved").glob("*/*/*.log")
    if left == "half":
        segment.write_bytes(segment.read_bytes()[:1024])
    else:
        segment.unlink()
    for verb in ("show", "verify"):
        ended = elected("ktriage", "rescue", verb, "saved")
        there = "1.0 KiB of 14.6 KiB" if left == "half" else "0 B of 14.6 KiB"
        assert ended.status == 1 and there in ended.out, ended
        assert "ktriage rescue read --to NEW --from-disk DIR" in ended.err


def test_of_a_damaged_file_the_sound_records_are_told_and_written_back_when_asked_for(
    elected: Caller, tmp_path: Path
) -> None:
    """The third of five batches is damaged. Its records come later, from another copy of the rescue."""
    (segment,) = (tmp_path / "saved").glob("*/*/*.log")
    data = bytearray(segment.read_bytes())
    shutil.copytree(tmp_path / "saved", tmp_path / "another")
    data[2 * len(data) // 5 + 70] ^= 1
    segment.write_bytes(data)
    for verb in ("show", "verify"):
        told = elected("ktriage", "rescue", verb, "saved")
        assert told.status == 1 and "offsets 1,200 to 1,299 cannot be used" in told.err, told
        assert "sound: 400 records in 4 batches" in told.err
        assert "ktriage restore saved --incomplete with --to-source" in told.err
    (branch,) = json.loads(elected("ktriage", "rescue", "show", "saved", "--output", "json").out)["branches"]
    ((first, beyond),) = [(part["firstOffset"], part["nextOffset"]) for part in branch["damaged"]]
    assert (branch["records"], first, beyond) == (400, 1200, 1300)
    refused = elected("ktriage", "restore", "saved", "--to-source", *AGREED, *TAIL)
    assert refused.status == 2 and "give --incomplete to write back the batches that are sound" in refused.err
    written = elected("ktriage", "restore", "saved", "--to-source", "--incomplete", *AGREED, *TAIL)
    assert written.status == 0 and "400 records written back; 400 counted" in written.out
    assert "not written back: payments-0, tail of broker 1: offsets 1,200 to 1,299" in written.out
    again = elected("ktriage", "restore", "saved", "--to-source", "--incomplete", *AGREED, *TAIL)
    assert "written back by an earlier run" in again.out and "offsets 1,200 to 1,299" in again.out
    between = ("--after-offset", "1199", "--before-offset", "1300")
    rest = elected("ktriage", "restore", "another", "--to-source", *between, *AGREED, *TAIL)
    assert rest.status == 0 and "100 records written back; 100 counted" in rest.out, rest
    everything = elected("ktriage", "restore", "another", "--to-source", *AGREED, *TAIL)
    assert everything.status == 1 and "400 offsets of this rescue were written" in everything.err


@pytest.mark.parametrize("name", ["rescue.json", "*/*/manifest.json", "*/*/*.log", "restore-source.jsonl"])
def test_a_file_of_a_rescue_that_is_a_device_is_not_read(elected: Caller, tmp_path: Path, name: str) -> None:
    """A pipe would block the command, and a device may never end."""
    (tmp_path / "saved/restore-source.jsonl").touch()
    (path,) = (tmp_path / "saved").glob(name)
    path.unlink()
    path.symlink_to("/dev/null")
    words = ("restore", "saved", "--to-source", "--dry-run", *TAIL)
    ended = (
        elected("ktriage", *words) if "restore" in name else elected("ktriage", "rescue", "verify", "saved")
    )
    assert ended.status in (1, 2) and f"{path.name}: is no regular file" in ended.err, ended


@pytest.mark.parametrize("changed", ["segment", "manifest", "missing"])
def test_verify_finds_what_is_not_as_it_was_written(elected: Caller, tmp_path: Path, changed: str) -> None:
    whole = elected("ktriage", "rescue", "verify", "saved")
    assert whole.status == 0 and whole.out.startswith("intact: 1 partition, "), whole
    assert "every file has its SHA-256" in whole.out
    (segment,) = (tmp_path / "saved").glob("*/*/*.log")
    manifest = segment.parent / "manifest.json"
    if changed == "segment":
        data = bytearray(segment.read_bytes())
        data[15] ^= 1  # the leader epoch, which a batch's own checksum does not cover
        segment.write_bytes(data)
    elif changed == "manifest":
        manifest.write_text(manifest.read_text().replace('"whole": true', '"whole": false'))
    else:
        manifest.unlink()
    ended = elected("ktriage", "rescue", "verify", "saved")
    assert "intact" not in ended.out
    assert ended.status == 1 and "not whole: payments-0" in ended.err


def test_a_topic_that_the_cluster_does_not_create_is_no_command_to_repeat(
    elected: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where every broker that is up has cordoned its log dirs: the reason is said, until it is gone."""

    async def refused(*_given: object) -> None:
        raise BackendError("topic kept was not created: INVALID_REPLICATION_FACTOR")

    words = ("restore", "saved", "--to-topic", "kept", *AGREED, *TAIL)
    with monkeypatch.context() as without_room:
        without_room.setattr(LiveRecordWriter, "create_topic", refused)
        ended = elected("ktriage", *words)
    assert ended.status == 1 and "INVALID_REPLICATION_FACTOR" in ended.err, ended
    status = elected("ktriage", "status", *TAIL).err
    assert "topic kept was not created: INVALID_REPLICATION_FACTOR" in status, status
    assert "next: ktriage restore" not in status, status
    assert elected("ktriage", *words).status == 0
    assert "was not created" not in elected("ktriage", "status", *TAIL).err
