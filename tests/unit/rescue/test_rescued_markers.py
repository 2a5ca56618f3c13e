"""Which markers of a rescue are evidence for what became of a transaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.errors import InputError
from console.rescue_files.manifest import (
    INDEX,
    MANIFEST,
    RescueIndex,
    branch_directory,
    index_json,
    manifest_json,
)
from console.rescue_files.rescued_branch import (
    RescueContents,
    RescuedBranch,
    open_rescue,
    refuse_other_rescue,
    rescue_of,
    rescued_markers,
)
from recovery.model import EpochSpan, TopicPartition
from recovery.rescue_branches import BranchPart
from recovery.transactions.transaction_values import RescuedMarker
from tests.unit.plan.plans import story
from tests.unit.rescue.batches import batch
from tests.unit.rescue.test_restore import marker, rescued

TP = TopicPartition("t", 0)
IDS = {(TP, "id")}


def saved(directory: Path, *branches: RescuedBranch) -> RescueContents:
    """A rescue directory with these branches."""
    for one in branches:
        assert one.manifest is not None
        place = directory / branch_directory(one.branch)
        place.parent.mkdir(parents=True, exist_ok=True)
        one.directory.rename(place)
        (place / MANIFEST).write_text(manifest_json(one.manifest))
    assert branches[0].manifest is not None
    index = RescueIndex(branches[0].manifest.header, tuple(one.branch for one in branches), ())
    (directory / INDEX).write_text(index_json(index))
    return open_rescue(directory)


def test_the_first_marker_of_each_producer_counts(tmp_path: Path) -> None:
    branch = rescued(
        tmp_path / "a",
        batch(1000, 5, 0, producer=1, transactional=True),
        marker(1005, 1, commit=True),
        marker(1006, 2, commit=False),
        marker(1007, 1, commit=False),
    )
    found = rescued_markers(saved(tmp_path / "r", branch), IDS)
    assert found == (RescuedMarker(TP, 1000, 1, 0, True), RescuedMarker(TP, 1000, 2, 0, False))


def test_behind_what_compaction_removed_no_marker_counts(tmp_path: Path) -> None:
    branch = rescued(
        tmp_path / "a", marker(1000, 1, commit=True), batch(1001, 2, 0), marker(1008, 2, commit=True)
    )
    (found,) = rescued_markers(saved(tmp_path / "r", branch), IDS)
    assert found.producer_id == 1


def test_a_branch_that_begins_behind_another_of_its_partition_does_not_count(tmp_path: Path) -> None:
    """What both logs held was read once, from the other: an earlier marker may be there."""
    first = rescued(tmp_path / "a", batch(1000, 10, 0))
    rest = rescued(tmp_path / "b", marker(1010, 1, commit=True))
    assert rescued_markers(saved(tmp_path / "r", first, rest), IDS) == ()


def test_of_another_topic_of_that_name_or_before_the_kept_log_none_counts(tmp_path: Path) -> None:
    branch = rescued(tmp_path / "a", marker(1000, 1, commit=True))
    contents = saved(tmp_path / "r", branch)
    assert rescued_markers(contents, {(TP, "created again")}) == ()
    head = RescuedBranch(
        contents.branches[0].directory,
        branch.branch._replace(part=BranchPart.HEAD, spans=(EpochSpan(0, 1000, 1001),)),
        branch.manifest,
    )
    assert rescued_markers(RescueContents(contents.path, contents.index, (head,)), IDS) == ()


def test_a_rescue_of_another_plan_or_cluster_is_refused(tmp_path: Path) -> None:
    contents = saved(tmp_path / "r", rescued(tmp_path / "a", marker(1000, 1, commit=True)))
    with pytest.raises(InputError, match="the rescue of plan p, and this is"):
        rescue_of(contents.path, story())
    assert rescue_of(contents.path, None) == contents
    with pytest.raises(InputError, match="rescued from cluster c, and this is d"):
        refuse_other_rescue(contents, "d")
