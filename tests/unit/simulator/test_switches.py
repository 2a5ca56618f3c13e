"""What a scenario may switch from shipped Kafka 4.3 to what documents or other releases say."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from backends.simulator.config import Config
from backends.simulator.loop import SECOND
from backends.simulator.messages import ElectLeaders
from backends.simulator.scenario.file_model import Switches
from backends.simulator.scenario.files import BUILT_IN, parse
from backends.simulator.world import World
from recovery.controller.controller_errors import ControllerError
from recovery.controller.rules import ControllerRules
from recovery.controller.transition_targets import ElectionKind
from tests.unit.simulator.clusters import FOO, QUICK, cluster, foo, tell, topology, until

GOOD = (BUILT_IN / "one-sided-cuts.yaml").read_text(encoding="utf-8")


def configured(switches: str) -> Config:
    text = GOOD.replace("  min_isr: 1\n", f"  min_isr: 1\n  switches: {switches}\n", 1)
    return parse(text, "mine", "mine.yaml").topology.config


def changed(before: Config, after: Config) -> dict[str, Any]:
    """What is configured otherwise, the rules each by itself."""
    found: dict[str, Any] = {}
    for one, other in ((before, after), (before.rules, after.rules), (before.membership, after.membership)):
        for field in fields(one):
            if getattr(one, field.name) != getattr(other, field.name):
                found[field.name] = getattr(other, field.name)
    return {name: value for name, value in found.items() if name not in ("rules", "membership")}


EACH: dict[str, tuple[bool, str]] = {
    "elr": (False, "elr"),
    "last_known_elr_members": (True, "last_known_elr_members"),
    "dead_last_known_leader_elected": (True, "dead_last_known_leader_elected"),
    "recovery_manager": (True, "recovery_manager"),
    "kip966_reassignment": (True, "kip966_reassignment"),
    "kip966_min_isr_change": (True, "kip966_min_isr_change"),
    "reassignment_waits_for_all": (True, "reassignment_waits_for_all"),
    "broker_epoch_check": (False, "broker_epoch_check"),
    "high_watermark_needs_min_isr": (False, "high_watermark_needs_min_isr"),
    "clean_shutdown_detection": (False, "clean_shutdown_detection"),
    "duplicate_voter_ids": (True, "duplicate_ids"),
    "released_calls": (True, "released_calls"),
}
"""Switch → how it departs from shipped 4.3, and what that changes."""


def test_without_any_switch_it_is_shipped_kafka_4_3() -> None:
    shipped = configured("{}")
    assert changed(shipped, configured('{kafka: "4.3"}')) == {}
    assert shipped.rules == ControllerRules()


def test_every_switch_is_tried() -> None:
    assert set(EACH) | {"kafka"} == set(Switches.model_fields)


@pytest.mark.parametrize("switch", EACH)
def test_a_switch_changes_what_it_names_and_nothing_else(switch: str) -> None:
    value, name = EACH[switch]
    after = configured(f"{{{switch}: {str(value).lower()}}}")
    assert changed(configured("{}"), after) == {name: value}


@pytest.mark.parametrize(
    ("release", "departs"),
    [
        ("4.0", {"dead_last_known_leader_elected": True, "reassignment_waits_for_all": True}),
        (
            "3.9",
            {
                "dead_last_known_leader_elected": True,
                "reassignment_waits_for_all": True,
                "elr": False,
                "clean_shutdown_detection": False,
            },
        ),
        (
            "kip-966",
            {
                "last_known_elr_members": True,
                "recovery_manager": True,
                "kip966_reassignment": True,
                "kip966_min_isr_change": True,
            },
        ),
    ],
)
def test_a_release_stands_for_all_of_its_departures(release: str, departs: dict[str, bool]) -> None:
    assert changed(configured("{}"), configured(f'{{kafka: "{release}"}}')) == departs


def _all_unclean(rules: ControllerRules) -> World:
    """Everybody dies, 3 last; 1 and 2, which were in the ELR by then, are back after unclean shutdowns."""
    world = cluster(topology(min_isr=3, acks=None, config=replace(QUICK, rules=rules)))
    for number in (1, 2, 3):
        world.loop.run_for(2 * SECOND)
        world.kill_broker(number)
        until(world, lambda number=number: world.image.brokers[number].fenced)  # type: ignore[misc]  # bound per turn
    for number in (1, 2):
        world.start_broker(number)
    until(world, lambda: not any(world.image.brokers[number].fenced for number in (1, 2)))
    return world


def test_the_last_known_elr_holds_one_member_as_shipped_and_all_of_them_by_the_document() -> None:
    assert foo(_all_unclean(ControllerRules())).last_known_elr == (3,)
    assert set(foo(_all_unclean(ControllerRules(last_known_elr_members=True))).last_known_elr) == {1, 2}


def test_before_4_1_a_dead_last_known_leader_was_elected_and_kept_everybody_else_out() -> None:
    """KAFKA-19522. 3 is in no ELR any more: it registered after an unclean shutdown, and has died again since."""
    for rules, leader in ((ControllerRules(), 1), (ControllerRules(dead_last_known_leader_elected=True), 3)):
        world = _all_unclean(rules)
        world.start_broker(3)
        until(world, lambda world=world: not foo(world).elr)  # type: ignore[misc]  # bound per turn
        world.kill_broker(3)
        world.loop.run_for(10 * SECOND)
        assert world.image.brokers[3].fenced
        refusal = tell(world, ElectLeaders(ElectionKind.UNCLEAN, ((FOO, -1),))).refusals[FOO]
        assert foo(world).leader == leader
        assert (None if refusal is None else refusal.error) in (None, ControllerError.ELECTION_NOT_NEEDED)
        produced = world.disks[1].logs[FOO].high_watermark
        assert (produced, world.image.brokers[leader].fenced) == (1000, leader == 3)
