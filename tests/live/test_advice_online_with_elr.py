"""Partitions that Kafka elected uncleanly and that have a leader again, on a cluster with the ELR.

On a cluster of its own: a topic that is deleted after its partition had an ELR can leave the members there in the
controller of 4.3.1. It fails then, and resigns, whenever such a member registers again ("existed in isrMembers, but
not in the topics map"), and the broker ends after a minute.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.kafka import KafkaCluster
from tests.live import advised_operator
from tests.live.advised_operator import Operator
from tests.live.online_after_unclean import (
    OnlineAgain,
    a_producer_whose_batches_were_cut_off_is_named,
    groups_go_back_to_the_planned_end,
    is_lost_unless_read,
    is_told,
    played,
)

pytestmark = pytest.mark.long

CLUSTER = replace(advised_operator.CLUSTER, elr=True)


@pytest.fixture(scope="module")
def online_again(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> OnlineAgain:
    return played(cluster, Operator(cluster, tmp_path_factory.mktemp("operator")))


def test_disks_are_to_be_read_before_former_members_of_partitions_with_a_leader_start(
    online_again: OnlineAgain,
) -> None:
    is_told(online_again)


def test_what_such_a_member_held_is_lost_unless_its_disk_was_read(online_again: OnlineAgain) -> None:
    is_lost_unless_read(online_again)


def test_groups_behind_the_end_of_the_planned_log_go_back_to_that_end(online_again: OnlineAgain) -> None:
    groups_go_back_to_the_planned_end(online_again)


def test_an_idempotent_producer_that_the_new_leader_refuses_is_named(online_again: OnlineAgain) -> None:
    a_producer_whose_batches_were_cut_off_is_named(online_again)
