"""Whether topics may be hidden from the caller is told by the log dirs of the brokers that list theirs."""

from __future__ import annotations

import pytest

from backends.base.answers import Partitions
from backends.live.nodes.log_dir_listing import emptiness_unknown
from recovery.model import Broker, Unknown, Why
from tests.unit.recovery.surveys import SILENT, survey

BROKERS = (Broker(1, "h", 1, None, fenced=True), Broker(2, "h", 2, None, fenced=False))
REFUSED = Unknown(Why.NOT_ANSWERED, "refused")


@pytest.mark.parametrize(
    ("dirs", "unread"),
    [({2: ()}, "broker 1"), ({2: REFUSED}, "broker 1 and 2"), ({1: (), 2: ()}, None)],
)
def test_no_visible_topic_is_no_empty_cluster_while_a_broker_lists_no_log_dirs(
    dirs: dict[int, tuple[()] | Unknown], unread: str | None
) -> None:
    found = emptiness_unknown(Partitions(()), BROKERS, dirs)
    assert (found is None) is (unread is None)
    assert unread is None or (found is not None and f"{unread} listed no log dirs" in found.detail)
    assert emptiness_unknown(Partitions((survey({1: SILENT}).state,)), BROKERS, dirs) is None
