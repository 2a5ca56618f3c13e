"""Nothing is changed from a console that was not armed, or not lately, or for another cluster."""

from __future__ import annotations

import pytest

from console.app.session.halt import Halt
from console.app.session.safety import IDLE_SECONDS, OPTION, SERVED, Safety, forbidden
from console.errors import NotDone
from console.signals import StopRequest


def test_it_starts_read_only_and_is_armed_by_hand() -> None:
    safety = Safety()
    assert not safety.armed
    assert safety.arm(5.0).armed
    assert not safety.arm(5.0).disarm().armed


@pytest.mark.parametrize("why", [OPTION, SERVED, "the profile 'p' says read-only: true"])
def test_where_it_is_forbidden_it_can_never_be_armed(why: str) -> None:
    with pytest.raises(NotDone, match=why):
        Safety(why).arm(0.0)


def test_ten_idle_minutes_make_it_read_only_again_and_say_why() -> None:
    armed = Safety().arm(100.0)
    assert armed.at(100.0 + IDLE_SECONDS - 0.1).armed
    lapsed = armed.at(100.0 + IDLE_SECONDS)
    assert not lapsed.armed
    assert "10 min" in lapsed.brief


def test_a_key_within_the_ten_minutes_keeps_it_armed_for_ten_more() -> None:
    touched = Safety().arm(0.0).touch(IDLE_SECONDS - 1)
    assert touched.at(2 * IDLE_SECONDS - 2).armed
    assert touched.left(IDLE_SECONDS) == IDLE_SECONDS - 1


def test_a_key_that_comes_too_late_does_not_arm_it_again() -> None:
    """Nobody looked at the clock meanwhile: the key itself finds that the time is over."""
    assert not Safety().arm(0.0).touch(IDLE_SECONDS + 1).armed


@pytest.mark.parametrize("event", ["reconnected", "other_cluster"])
def test_a_reconnect_and_another_cluster_disarm_it(event: str) -> None:
    lapsed: Safety = getattr(Safety().arm(0.0), event)()
    assert not lapsed.armed
    assert lapsed.brief


def test_a_lost_cluster_disarms_it_and_that_it_is_back_is_said() -> None:
    lost = Safety().arm(0.0).lost()
    assert not lost.armed
    assert lost.brief == "cluster lost"
    assert lost.reconnected().brief == "reconnected"
    idle = Safety().arm(0.0).at(IDLE_SECONDS)
    assert idle.lost().reconnected() == idle


def test_a_read_only_console_does_not_say_that_it_lapsed() -> None:
    assert Safety().reconnected() == Safety()
    assert Safety().at(10_000.0) == Safety()


def test_the_hardest_reason_is_told_first() -> None:
    assert forbidden(read_only_option=True, profile="p", served=True) == SERVED
    assert forbidden(read_only_option=True, profile="p", served=False) == "p"
    assert forbidden(read_only_option=True, profile=None, served=False) == OPTION
    assert forbidden(read_only_option=False, profile=None, served=False) is None


def test_leaving_stops_what_is_under_way_as_a_signal_does() -> None:
    whole, leaving = StopRequest(), [False]
    halt = Halt(whole, lambda: leaving[0])
    assert not halt
    with halt.in_flight():
        assert whole.flights == 1
        leaving[0] = True
        assert halt
    assert whole.flights == 0
    leaving[0] = False
    assert not halt
    whole.signum = 15
    assert halt
