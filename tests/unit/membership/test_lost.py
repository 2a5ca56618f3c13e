"""A quorum that nobody leads, where not everything that would be counted is known."""

from __future__ import annotations

from typing import Any

from backends.base.membership import Node, Probe, Role
from console.actions.quorum import UNLOADED, lost
from console.output.quorum import lost_lines
from recovery.membership.lost import Host, Lost
from recovery.model import Unknown, Why
from tests.unit.membership.quorums import key


def test_without_the_voters_known_no_count_is_claimed() -> None:
    """Four have registered, one of them was removed since: how many must come back is not known."""
    up = Host(key(1), "h1:9093", True, "", -1, 42)
    down = [Host(key(node), f"h{node}:9093", False, "refused", -1, -1) for node in (2, 3, 4)]
    said = Lost("c", (up, *down), False, "").sentence
    assert "1 of the 4 controllers that have registered answer" in said
    assert "at most 2 of: 2 (h2:9093), 3 (h3:9093), 4 (h4:9093)" in said
    assert "are needed" not in said


def test_one_on_a_new_disk_is_not_counted_among_those_that_are_enough() -> None:
    hosts = (
        Host(key(1), "h1:9093", True, "", 90, 80),
        Host(key(2), "h2:9093", True, "UNSUPPORTED_VERSION", 90, -1),
        *(Host(key(node), f"h{node}:9093", False, "refused", 80, -1) for node in (3, 4, 5)),
    )
    said = Lost("c", hosts, True, "then").sentence
    assert "Bring back 1 of: 3" in said
    assert "2 tells no metadata: with a new disk it holds nothing and does not count, so that 1 more" in said


class Unloaded:
    """Stands for a real quorum without a leader: a simulated controller answers whatever it has loaded."""

    async def nodes(self) -> tuple[Node, ...]:
        told = Unknown(Why.NOT_OFFERED, f"UNSUPPORTED_VERSION: {UNLOADED}")
        loaded = Probe("h1:9093", "c", 1, -1, (0, 1), 42, Unknown(Why.NOT_ALLOWED, ""))
        return (
            Node(1, Role.CONTROLLER, "h1:9093", loaded),
            Node(2, Role.CONTROLLER, "h2:9093", told),
            Node(3, Role.CONTROLLER, "h3:9093", Unknown(Why.NOT_ANSWERED, "")),
        )


async def test_a_controller_that_answers_without_any_metadata_is_not_called_down() -> None:
    membership: Any = Unloaded()
    found = await lost(membership, "c", None)
    assert [host.key.id for host in found.down] == [3]
    assert [host.key.id for host in found.without_metadata] == [2]
    row = next(line for line in lost_lines(found) if line.startswith("  2 "))
    assert "none told" in row
    assert "DOWN" not in row
