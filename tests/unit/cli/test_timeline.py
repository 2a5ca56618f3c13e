"""``ktriage timeline`` on a broker's metadata directory: the stale long tail, as Kafka 4.3.1 wrote it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.metadata_log.directory import DirectoryReading, read_directory
from console.jobs.timeline import timeline as history_timeline
from recovery.metadata_log.history import fold
from recovery.metadata_log.timeline import MetadataTimeline
from tests.unit.cli.command_process import invoke
from tests.unit.metadata_log.incident_log import INCIDENT

FROM = ("ktriage", "timeline", "--metadata-dir", str(INCIDENT))


def test_the_worst_is_found_by_its_kind(tmp_path: Path) -> None:
    ended = invoke(tmp_path, *FROM, "--kind", "offline", "--kind", "unclean election")
    assert ended.status == 0
    times = [line.split()[:2] for line in ended.out.splitlines()[1:]]
    assert times == [
        ["2026-11-22", "21:08:50.248"],
        ["2026-11-22", "21:08:50.337"],
        ["2026-11-22", "21:08:59.650"],
    ]


def test_json_holds_every_event_with_its_partitions_and_brokers(tmp_path: Path) -> None:
    told = json.loads(invoke(tmp_path, *FROM, "--output", "json", "--topic", "orders", "--last", "0").out)
    assert told["schema"] == "ktriage.timeline/1"
    last = told["events"][-1]
    assert (last["kind"], last["partitions"], last["brokers"]) == ("offline", ["orders-0"], [3])
    assert told["leftOut"] == 0


def test_the_newest_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    told = json.loads(invoke(tmp_path, *FROM, "--output", "json", "--last", "2").out)
    assert len(told["events"]) == 2
    assert told["leftOut"] > 10


def test_a_topic_that_the_log_never_had_is_named(tmp_path: Path) -> None:
    """No event of a mistyped topic is no sign of calm."""
    told = invoke(tmp_path, *FROM, "--topic", "order", "--topic", "orders", "--output", "json")
    assert "this metadata log knows no topic order" in json.loads(told.out)["notes"]
    assert "no topic orders" not in told.out


def test_one_partition_is_told_as_it_is_among_all(tmp_path: Path) -> None:
    """Batches that say nothing of it are not even decoded: the events are the same."""
    folder = str(tmp_path / "incident")
    run = invoke(tmp_path, "ktriage", "simulate", "run", "zone-power-loss", "--metadata-dir", folder)
    assert run.status == 0, run.err
    everything = ("ktriage", "timeline", "--metadata-dir", folder, "--last", "0", "--output", "json")
    told = json.loads(invoke(tmp_path, *everything).out)["events"]
    clicks = json.loads(invoke(tmp_path, *everything, "--topic", "clicks").out)["events"]
    assert clicks == [event for event in told if "clicks" in event["topics"]]
    one = json.loads(invoke(tmp_path, *everything, "--topic", "clicks", "--partition", "3").out)["events"]
    kinds = [event["kind"] for event in clicks if "clicks-3" in event["partitions"]]
    assert [event["kind"] for event in one] == kinds != []


def test_a_time_and_a_broker_narrow_it(tmp_path: Path) -> None:
    narrow = ("--since", "2026-11-22T21:08:56", "--until", "2026-11-22T21:08:57", "--broker-id", "2")
    told = json.loads(invoke(tmp_path, *FROM, "--output", "json", *narrow).out)
    assert [event["kind"] for event in told["events"]] == ["broker fenced", "leader changed"]


def test_since_a_moment_every_event_is_told_as_in_the_whole_log(tmp_path: Path) -> None:
    """Older changes are only followed: what a partition was before its first event still counts."""
    log = fold(read_directory(DirectoryReading(INCIDENT)))
    every = list(MetadataTimeline(log).events())
    for moment in {event.time_ms for event in every}:
        newer = [event for event in MetadataTimeline(log).events(moment) if event.time_ms >= moment]
        assert newer == [event for event in every if event.time_ms >= moment]


def test_a_long_log_shows_how_far_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_timeline, "RECORDS_BETWEEN_REPORTS", 5)
    counts: list[int] = []
    found = history_timeline.from_directory(INCIDENT, history_timeline.EventFilter(), counts.append)
    assert counts == list(range(5, found.timeline.history.end_offset, 5))[: len(counts)] and len(counts) > 5


def test_markdown_cannot_be_broken_by_a_name(tmp_path: Path) -> None:
    ended = invoke(tmp_path, *FROM, "--output", "markdown", "--kind", "feature changed")
    assert "transaction.version" in ended.out
    assert ended.out.startswith("**Timeline** of ")


def test_a_simulated_clusters_log_tells_the_same_from_its_folder(tmp_path: Path) -> None:
    folder = str(tmp_path / "incident")
    run = invoke(
        tmp_path, "ktriage", "simulate", "run", "stale-long-tail", "--until", "90", "--metadata-dir", folder
    )
    assert run.status == 0, run.err
    again = invoke(tmp_path, "ktriage", "simulate", "run", "stale-long-tail", "--metadata-dir", folder)
    assert (again.status, "nothing is overwritten" in again.err) == (2, True)
    disk, cluster = (
        json.loads(invoke(tmp_path, "ktriage", "timeline", *source, "--output", "json").out)["events"]
        for source in (("--metadata-dir", folder), ("--simulate", "stale-long-tail"))
    )
    assert disk == cluster
    assert [event["kind"] for event in cluster].count("unclean election") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metadata-dir", "/nowhere"), "cannot be read"),
        (("--metadata-dir", str(INCIDENT), "--since", "yesterday"), "--since 'yesterday'"),
        (("--metadata-dir", str(INCIDENT), "--follow"), "--follow needs a running cluster"),
        (("--metadata-dir", str(INCIDENT), "--partition", "0"), "give one --topic with it"),
        (("--metadata-dir", str(INCIDENT), "--simulate", "disk-failure"), "instead of a cluster"),
        (("--simulate", "disk-failure", "--follow"), "nothing happens in a simulated cluster"),
        ((), "this needs a cluster"),
    ],
)
def test_bad_input_gets_one_line(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    ended = invoke(tmp_path, "ktriage", "timeline", *options)
    assert ended.status != 0
    assert said in ended.err
    assert "Traceback" not in ended.err
