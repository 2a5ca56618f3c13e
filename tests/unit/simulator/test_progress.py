"""Progress never passes its end."""

from __future__ import annotations

from backends.base.answers import Depth, SurveyRequest
from backends.simulator.adapter import SimulatorBackend
from console.simulator_backend import scenario


async def test_a_survey_of_leaders_alone_does_not_count_who_is_not_asked() -> None:
    told: list[tuple[int, int]] = []
    backend = SimulatorBackend(scenario("static-quorum-upgrade"))
    await backend.open()
    states = (await backend.partitions()).states
    assert states and not any(state.offline for state in states)
    request = SurveyRequest(states, 5.0, Depth.LAST, leaders_only=True)
    await backend.survey(request, lambda _what, done, of: told.append((done, of)))
    assert told[-1] == (len(states), len(states)), "one leader for each partition"
    assert all(done <= of for done, of in told)
