"""Ways to lose a quorum for good, each with the rebuild and what must be there afterwards (``lost_quorum.py``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kafka import KafkaCluster
from tests.live.lost_quorum import INCIDENTS, LostQuorum, RebuiltQuorum

pytestmark = pytest.mark.long

CHOSEN = (
    "TLS between controllers, 4.3.1",
    "no controller's disk, the longest of three brokers' copies, 4.4.0",
    "nodes of both roles, 4.4.0",
    "controllers 4.4.0, brokers 4.3.1",
    "static voters, 3.9.1",
)
"""One of each kind that tests/live has nowhere else; ``make soak`` has all."""
HERE = {incident.name: incident for incident in INCIDENTS if incident.name in CHOSEN}


@pytest.mark.parametrize(
    ("incident", "cluster"),
    [pytest.param(incident, incident.spec, id=name) for name, incident in HERE.items()],
    indirect=["cluster"],
)
def test_everything_that_was_acknowledged_is_there_again(
    incident: LostQuorum, cluster: KafkaCluster, tmp_path: Path
) -> None:
    assert len(HERE) == len(CHOSEN)
    RebuiltQuorum(incident, cluster, tmp_path).whole()
