"""Whether the controller would elect a replica, as far as clients can see."""

from __future__ import annotations

from recovery.model import Broker, PartitionState, Replica, Standing, Unknown, Why
from recovery.standing import standing, standing_later

STATE = PartitionState("t", 0, "id", -1, 4, (1, 2, 3), (1,), (), (), (2,))
LISTED = {number: Broker(number, "", 0, None, False) for number in (1, 2, 3)}


def test_a_replica_in_a_failed_log_dir_of_a_broker_that_is_up_cannot_be_elected() -> None:
    found = {broker: standing(STATE, broker, LISTED) for broker in STATE.replicas}
    assert found == {1: Standing.ELECTABLE, 2: Standing.OFFLINE_REPLICA, 3: Standing.ELECTABLE}


def test_a_fenced_broker_is_told_as_such_whether_or_not_its_replica_is_listed_offline() -> None:
    brokers = LISTED | {2: LISTED[2]._replace(fenced=True), 3: LISTED[3]._replace(fenced=True)}
    assert standing(STATE, 2, brokers) is standing(STATE, 3, brokers) is Standing.FENCED


def test_a_broker_that_is_not_listed_is_gone_only_where_fenced_ones_are_listed() -> None:
    listed = {1: LISTED[1]}
    assert standing(STATE, 3, listed) is Standing.UNREGISTERED
    assert standing(STATE, 3, {1: listed[1]._replace(fenced=None)}) is Standing.FENCED


def test_a_later_state_shows_who_came_and_who_went_and_no_more() -> None:
    silent = Unknown(Why.NOT_ANSWERED, "")
    up, fenced = (Replica(1, how, silent) for how in (Standing.ELECTABLE, Standing.FENCED))
    assert standing_later(up, False, True) is Standing.OFFLINE_REPLICA
    assert standing_later(fenced, True, False) is Standing.ELECTABLE
    assert standing_later(fenced, True, True) is Standing.FENCED
    gone = Replica(1, Standing.UNREGISTERED, silent)
    assert standing_later(gone, True, False) is Standing.UNREGISTERED
