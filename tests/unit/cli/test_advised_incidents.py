"""Incidents whose first advice once led to the loss of acknowledged records (scenarios/)."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller

SCENARIOS = Path(__file__).parent / "scenarios"
COMMANDS = (("status",), ("plan", "--all-offline-partitions", "plan.json"))


def advised(call: Caller, words: tuple[str, ...], scenario: str) -> tuple[str, str]:
    """What to do first, with its warnings and reasons, and the whole output, each on one line."""
    ended = call("ktriage", *words, "--simulate", str(SCENARIOS / f"{scenario}.yaml"))
    lines = iter(ended.out.splitlines())
    first = next(line for line in lines if line.startswith("Do first"))
    first += "".join(takewhile(lambda line: line.startswith("  "), lines))
    return " ".join(first.split()), " ".join(ended.out.split())


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_broker_whose_return_cuts_off_acknowledged_records_is_not_to_be_brought_back(
    call: Caller, words: tuple[str, ...]
) -> None:
    first, shown = advised(call, words, "killed-after-unclean-election")
    assert "Start broker 1 or read its disk: that shows whose log is whole." in first
    assert "! Read the disk of broker 3 too: only all of these logs together show whose is whole." in first
    assert "! Do not start broker 3 first: it leads at once and cuts off what broker 2 holds." in first
    assert "Broker 3 led after an unclean election" in first
    assert "Start broker 3" not in shown
    assert words == ("status",) or "wait for 1" in shown


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_reassignment_in_progress_has_an_advice_and_nobody_is_sent_into_an_empty_log(
    call: Caller, words: tuple[str, ...]
) -> None:
    first, shown = advised(call, words, "reassignment-to-an-empty-broker")
    assert "Start broker 2 with its old disk" in first
    assert "A reassignment in progress needs this return." in first
    assert words == ("status",) or (
        "the first live replica of the assignment, whatever its log lacks: broker 4 now, its log is EMPTY"
        in shown
    )


def test_disks_are_to_be_read_before_brokers_start_that_hold_what_the_leader_lacks(call: Caller) -> None:
    """Nothing is offline: status alone shows that starting the brokers cuts off acknowledged records."""
    first, shown = advised(call, ("status",), "online-after-unclean-election")
    assert first.startswith(
        "Do first: Read the disks of brokers 1 and 3 before they start: leaders may lack records. They may hold"
        " acknowledged records that leader 2 of orders-0 (elected uncleanly at T+"
    )
    assert "lacks and that are cut off when they start." in first
    assert "ktriage rescue read --to DIR --from-disk LOG_DIR" in first
    assert "read the disks of 1,3 before they start" in shown and "no partition offline" in shown


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_broker_that_an_offline_partition_waits_for_is_not_started_before_its_disk_is_read(
    call: Caller, words: tuple[str, ...]
) -> None:
    first, shown = advised(call, words, "one-waits-for-what-another-fears")
    assert first.startswith("Do first (orders-0): Read the disks of brokers 1 and 3 before they start")
    assert "Only then (payments-0): Start broker 1 or 3, each with its old disk" in shown
