"""Incidents whose first advice once led to the loss of acknowledged records (scenarios/)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller

SCENARIOS = Path(__file__).parent / "scenarios"
COMMANDS = (("status",), ("plan", "--all-offline-partitions", "plan.json"))


def advised(call: Caller, words: tuple[str, ...], scenario: str) -> tuple[str, str]:
    """The line of what to do first, and the whole output, each on one line."""
    ended = call("ktriage", *words, "--simulate", str(SCENARIOS / f"{scenario}.yaml"))
    first = next(line for line in ended.out.splitlines() if line.startswith("Do first"))
    return " ".join(first.split()), " ".join(ended.out.split())


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_broker_whose_return_cuts_off_acknowledged_records_is_not_to_be_brought_back(
    call: Caller, words: tuple[str, ...]
) -> None:
    first, shown = advised(call, words, "killed-after-unclean-election")
    assert "Start broker 1, here or with its disk on another host" in first
    assert "read the disk of broker 3 too: for this partition only all of these logs together decide" in first
    assert "Do not start broker 3 before: it led after an unclean election" in first
    assert "its return cuts off what broker 2 holds from before." in first
    assert "ring broker 3 back" not in shown
    assert words == ("status",) or "wait for 1" in shown


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_reassignment_in_progress_has_an_advice_and_nobody_is_sent_into_an_empty_log(
    call: Caller, words: tuple[str, ...]
) -> None:
    first, shown = advised(call, words, "reassignment-to-an-empty-broker")
    assert "Bring broker 2 back with its disk intact" in first
    assert "which a reassignment in progress needs" in first
    assert words == ("status",) or (
        "the first live replica of the assignment, whatever its log lacks: broker 4 now, its log is EMPTY"
        in shown
    )


def test_disks_are_to_be_read_before_brokers_start_that_hold_what_the_leader_lacks(call: Caller) -> None:
    """Nothing is offline: status alone shows that starting the brokers cuts off acknowledged records."""
    first, shown = advised(call, ("status",), "online-after-unclean-election")
    assert first.startswith(
        "Do first (orders-0): Before broker 1 or 3 is started, read their disks (ktriage rescue read --to DIR"
        " --from-disk LOG_DIR): they may hold acknowledged records that leader 2 of orders-0 (elected"
        " uncleanly at T+"
    )
    assert first.endswith("lacks and that are cut off when they start.")
    assert "read the disks of 1,3 before they start" in shown and "no partition offline" in shown


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_broker_that_an_offline_partition_waits_for_is_not_started_before_its_disk_is_read(
    call: Caller, words: tuple[str, ...]
) -> None:
    first, shown = advised(call, words, "one-waits-for-what-another-fears")
    assert first.startswith("Do first (orders-0): Before broker 1 or 3 is started, read their disks")
    assert "Only then (payments-0): Bring broker 1 or 3 back with its disk intact" in shown
