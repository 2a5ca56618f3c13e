"""Who may change a cluster from a console, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.app.session.safety import IDLE_SECONDS
from console.target import resolve
from tests.console.faults import scenario
from tests.console.robot import console


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_it_starts_read_only_and_what_applying_says_of_arming_arms_it() -> None:
    async with console("last-replica-standing") as robot:
        await robot.sees("READ-ONLY")
        await robot.plans(1)
        await robot.asks_to_apply()
        await robot.sees("READ-ONLY, this is only shown: Esc, then A arms the console")
        await robot.press("escape")
        await robot.hears("only shown: nothing was sent")
        await robot.arms()
        assert not (await robot.asks_to_apply()).request.only_shown


async def test_the_key_that_arms_says_disarm_while_it_is_armed() -> None:
    async with console("last-replica-standing") as robot:
        await robot.sees("A arm")
        await robot.arms()
        await robot.sees("A disarm")
        await robot.press("A")
        await robot.sees("A arm", "READ-ONLY")


async def test_who_may_not_alter_the_cluster_is_told_so_and_applies_nothing(home: Path) -> None:
    denied = "operator: {at: 60, denied: [ALTER cluster]}"
    path = scenario("last-replica-standing", home, **{"operator: {at: 60}": denied})
    async with console(resolve(None, None, str(path), None)) as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.hears("armed, to no avail: ALTER on the cluster is missing")
        await robot.press("X")
        await robot.hears(
            "ALTER on the cluster is missing: Kafka would refuse every change but records written back"
        )
        assert robot.app.screen is robot.desk


async def test_what_the_cluster_does_not_tell_of_alter_is_not_guessed(home: Path) -> None:
    denied = "operator: {at: 60, denied: [ALTER cluster, DESCRIBE cluster]}"
    path = scenario("last-replica-standing", home, **{"operator: {at: 60}": denied})
    async with console(resolve(None, None, str(path), None)) as robot:
        await robot.arms()
        await robot.hears("armed: the simulator can be changed if ALTER on the cluster is granted (unknown")


async def test_ten_idle_minutes_make_it_read_only_again() -> None:
    clock = Clock()
    async with console("last-replica-standing", clock=clock) as robot:
        await robot.arms()
        await robot.sees("ARMED")
        clock.now += IDLE_SECONDS + 1
        await robot.until(lambda: not robot.session.safety.armed, "read-only")
        await robot.sees("READ-ONLY: idle 10 min")


async def test_read_only_is_for_good_and_says_why() -> None:
    async with console("last-replica-standing", read_only=True) as robot:
        await robot.sees("READ-ONLY: --read-only")
        await robot.press("A")
        await robot.hears("stays read-only")
        assert not robot.session.safety.armed


async def test_without_its_state_directory_it_shows_the_cluster_and_cannot_be_armed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No change could be recorded, and the lock would keep nobody out."""
    shared = home / "not-mounted"
    monkeypatch.setenv("KTRIAGE_STATE_DIR", str(shared))
    async with console("last-replica-standing") as robot:
        await robot.hears("nothing can be changed from here, and whether an earlier run left something")
        await robot.press("A")
        await robot.hears(f"not armed: {shared}: No such file or directory")
        assert not robot.session.safety.armed
        await robot.press("7")
        await robot.sees("broker 2 fenced")
        await robot.press("H")
        await robot.sees("Whether a run left something unfinished is not known")
        await robot.press("escape")
        shared.mkdir(mode=0o700)
        await robot.arms()


async def test_a_served_console_can_never_be_armed() -> None:
    async with console("last-replica-standing", served=True) as robot:
        await robot.press("A")
        await robot.hears("no log-in")
        assert not robot.session.safety.armed


async def test_a_profile_that_is_read_only_cannot_be_armed(home: Path) -> None:
    settings = home / "config" / "ktriage" / "clusters.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("clusters: {production: {bootstrap: '127.0.0.1:9', colour: red, read-only: true}}")
    async with console(resolve(None, "production", None, None), looked=False) as robot:
        await robot.sees("LIVE", "production", "NOT REACHED", "READ-ONLY")
        await robot.sees("nobody is reached at this address", "C opens another address")
        await robot.press("A")
        await robot.hears("read-only: true")


async def test_a_confirmation_that_outlasts_the_arming_changes_nothing() -> None:
    clock = Clock()
    async with console("last-replica-standing", clock=clock) as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.asks_to_apply()
        clock.now += IDLE_SECONDS + 1
        await robot.until(lambda: not robot.session.safety.armed, "lapsed under the confirmation")
        await robot.confirms("payments", "too late")
        await robot.hears("the console is read-only")
        assert not robot.session.draft.outcomes


async def test_only_the_topics_own_name_lets_records_go() -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.arms()
        for wrong in ("payment", "1", "PAYMENTS"):
            confirmation = await robot.asks_to_apply()
            confirmation.query_one("#expected").value = wrong  # type: ignore[attr-defined]  # an Input
            confirmation.query_one("#reason").value = "because"  # type: ignore[attr-defined]  # an Input
            await robot.pilot.pause()
            assert confirmation.query_one("#confirm").disabled
            await robot.press("tab", "tab", "enter", "escape")
            await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
            assert not robot.session.draft.outcomes


async def test_a_cluster_that_was_never_seen_is_not_armed_for() -> None:
    async with console(resolve("127.0.0.1:9", None, None, None), looked=False) as robot:
        await robot.sees("NOT REACHED")
        await robot.press("A")
        await robot.hears("the cluster was not read yet")
        assert not robot.session.safety.armed


async def test_a_served_console_reads_and_writes_no_file(home: Path) -> None:
    async with console("last-replica-standing", served=True) as robot:
        await robot.chooses(1)
        for key in ("E", "Y", "o", "w"):
            if key == "w":
                await robot.opens("6")
            robot.desk.say("")
            await robot.press(key)
            await robot.hears("a served console reads and writes no files")
            assert robot.app.screen is robot.desk
    assert written(home) == {"simulations"}


def written(home: Path) -> set[str]:
    """Kinds of what was kept."""
    return {path.name for path in (home / "state" / "ktriage").iterdir()}
