"""The transaction markers that an election cut off, as a rescue directory holds them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from console.errors import InputError
from console.rescue.rescued_branch import Ending, RescueContents, RescuedBranch, marker_ending, open_rescue
from recovery.model import TopicPartition
from recovery.plan.values import BarePlan, Plan
from recovery.rescue_branches import BranchPart
from recovery.transactions.transaction_values import RescuedMarker


def rescue_of(directory: Path | None, plan: Plan | BarePlan | None) -> RescueContents | None:
    """The rescue that ``--rescue`` names, None without it. Raises InputError: it is another plan's."""
    if directory is None:
        return None
    contents = open_rescue(directory)
    made_for = contents.index.header.plan_id
    # A rescue of disks, compared with the leaders of now, is of no plan.
    if made_for and isinstance(plan, Plan) and plan.header.plan_id != made_for:
        raise InputError(f"{directory}: the rescue of plan {made_for}, and this is {plan.header.plan_id}")
    return contents


def refuse_other_rescue(contents: RescueContents | None, cluster_id: str) -> None:
    """Raises InputError where it was read from another cluster."""
    if contents is not None and contents.index.header.cluster_id != cluster_id:
        raise InputError(
            f"{contents.path}: rescued from cluster {contents.index.header.cluster_id}, and this is {cluster_id}"
        )


def rescued_markers(
    contents: RescueContents, topic_ids: Collection[tuple[TopicPartition, str]]
) -> tuple[RescuedMarker, ...]:
    """The first marker of every producer, of each branch of these partitions that begins where its log and the
    chosen one part. Reads the branches. Raises InputError where one is damaged.
    """
    tails = [one for one in contents.branches if one.branch.part is BranchPart.TAIL]
    # Of two logs that share offsets only one is read as a whole: the rest of the other begins later.
    diverged: dict[TopicPartition, int] = {}
    for one in tails:
        diverged[one.branch.tp] = min(one.branch.start, diverged.get(one.branch.tp, one.branch.start))
    return tuple(
        marker
        for one in tails
        if (one.branch.tp, one.branch.topic_id) in topic_ids and one.branch.start == diverged[one.branch.tp]
        for marker in _first_markers(one)
    )


def _first_markers(rescued: RescuedBranch) -> Iterator[RescuedMarker]:
    """Behind a gap nothing is taken: compaction may have removed an earlier marker there."""
    branch, producers = rescued.branch, set()
    offset = branch.start
    for batch in rescued.batches():
        header = batch.header
        if header.base_offset > offset:
            return
        offset = header.next_offset
        ending = marker_ending(batch) if header.is_control and header.is_transactional else None
        if ending is not None and header.base_offset >= branch.start and header.producer_id not in producers:
            producers.add(header.producer_id)
            yield RescuedMarker(
                branch.tp, branch.start, header.producer_id, header.producer_epoch, ending is Ending.COMMITTED
            )
