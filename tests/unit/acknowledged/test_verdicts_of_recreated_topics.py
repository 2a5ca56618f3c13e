"""Verdicts of a topic that was made again by the name of a deleted one."""

from __future__ import annotations

import pytest

from recovery.acknowledged.verdict import ConditionKind
from recovery.metadata_log.records import ConfigRecord, ResourceType
from tests.unit.acknowledged.controller_log import ControllerLog
from tests.unit.recovery.surveys import SILENT, log


@pytest.mark.parametrize(
    ("policy", "named"), [("compact", True), ("compact,delete", True), ("delete", False)]
)
def test_a_log_that_brokers_may_have_compacted_by_an_old_configuration_is_not_called_whole(
    policy: str, named: bool
) -> None:
    """A broker that restarted goes by the deleted topic's cleanup.policy; the others say that there is none."""
    told = ControllerLog()
    told.says(ConfigRecord(ResourceType.TOPIC, "t", "cleanup.policy", policy))
    told.says(ConfigRecord(ResourceType.TOPIC, "t", "cleanup.policy", None))
    told.isr(1, 2)
    told.isr(1)
    told.isr(leader=-1)
    verdict = told.verdict(1, {1: log((0, 0, 900)), 2: SILENT, 3: SILENT})
    assert verdict.none
    holes = [one for one in verdict.conditions if one.kind is ConditionKind.NO_COMPACTION_HOLES]
    assert bool(holes) is named
