"""Whether topics may be hidden from the caller is told by the log dirs of the brokers that list theirs."""

from __future__ import annotations

import pytest

from backends.base.answers import Partitions
from backends.live.nodes.log_dir_listing import without_log_dirs
from recovery.model import Broker, Unknown, Why
from tests.unit.recovery.surveys import SILENT, survey

BROKERS = (Broker(1, "h", 1, None, fenced=True), Broker(2, "h", 2, None, fenced=False))
REFUSED = Unknown(Why.NOT_ANSWERED, "refused")


@pytest.mark.parametrize(
    ("dirs", "unread"), [({2: ()}, {1}), ({2: REFUSED}, {1, 2}), ({1: (), 2: ()}, set())]
)
def test_a_topic_may_be_hidden_on_brokers_that_list_no_log_dirs(
    dirs: dict[int, tuple[()] | Unknown], unread: set[int]
) -> None:
    assert without_log_dirs(Partitions(()), BROKERS, dirs) == unread


def test_before_4_0_a_dead_broker_is_known_by_its_replicas_only() -> None:
    listed = (BROKERS[1]._replace(fenced=None),)
    found = Partitions((survey({1: SILENT, 2: SILENT, 3: SILENT}).state,))
    assert without_log_dirs(found, listed, {2: ()}) == {1, 3}
