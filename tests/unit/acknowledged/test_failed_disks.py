"""Whose disk failed under a partition: by what brokers list or listed before, and by the metadata log."""

from __future__ import annotations

import pytest

from backends.base.answers import LogDir
from backends.base.failed_disks import FailedDisks, LogDirs
from recovery.controller.registration import PartitionChange
from recovery.metadata_log.records import BrokerRegistrationChangeRecord
from recovery.model import Survey, Unknown, Why
from tests.unit.acknowledged.controller_log import ControllerLog
from tests.unit.recovery.surveys import SILENT, log, survey

GONE = Unknown(Why.NOT_ANSWERED, "broker 2: connection refused")


def failed_then_stopped() -> ControllerLog:
    """The log dir "a" of 2 fails, with its replica; then 2 stops. No host has seen the failure."""
    told = ControllerLog()
    told.starts(2, ("a", "b"))
    told.changes(PartitionChange(directories=("x", "a", "y")))
    told.says(BrokerRegistrationChangeRecord(2, 0, directories=("b",)))
    told.isr(2, leader=-1)
    return told


def silent_2() -> Survey:
    found = survey({1: log((0, 0, 9)), 2: SILENT, 3: SILENT})
    return found._replace(state=found.state._replace(topic_id="id", partition=0))


@pytest.mark.parametrize("log_dirs", [{}, {2: GONE}])
def test_a_disk_that_failed_before_anybody_looked_is_known_from_the_metadata_log(log_dirs: LogDirs) -> None:
    history = failed_then_stopped().folded()
    assert FailedDisks(log_dirs, (), history).under(silent_2()) == {2}
    assert not FailedDisks(log_dirs).under(silent_2()), "without the metadata log it is not known"


def test_what_the_broker_lists_now_counts_more_than_the_metadata_log() -> None:
    """The dir was repaired: its broker lists it, and the controller has not heard of it yet."""
    listed = (LogDir(2, "/a", None, 9, 9, ()), LogDir(2, "/b", None, 9, 9, ()))
    assert not FailedDisks({2: listed}, (), failed_then_stopped().folded()).under(silent_2())


def test_the_failure_of_another_log_dir_does_not_count() -> None:
    told = failed_then_stopped()
    told.changes(PartitionChange(directories=("x", "b", "y")))
    assert not FailedDisks({}, (), told.folded()).under(silent_2())
