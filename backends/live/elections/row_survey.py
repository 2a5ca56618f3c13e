"""A survey of a plan's rows right before their elections are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from backends.base.answers import LikelyEpochs
from backends.live.elections.election_api import ElectionApi
from recovery.model import Broker, PartitionState, Replica, Standing, Survey, TopicPartition, Unknown, Why
from recovery.plan.judgement import brokers_to_ask
from recovery.plan.values import PlanRow
from recovery.standing import standing, standing_later

NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")


class RowSurvey:
    """Surveys of rows, and the connections over which their logs were read."""

    def __init__(self, api: ElectionApi) -> None:
        self._api = api
        self._carried: dict[int, object | None] = {}

    async def of(self, rows: Sequence[PlanRow]) -> Mapping[TopicPartition, Survey | Unknown | None]:
        """Every replica that could be elected now, or was asked when the plan was made, is asked for its log."""
        tps = [row.tp for row in rows]
        cluster, found, reassigning = await asyncio.gather(
            self._api.cluster(), self._api.states(tps), self._api.reassigning(tps)
        )
        brokers = {broker.id: broker for broker in cluster.brokers}
        standings = {
            tp: {broker: _standing(state, broker, brokers) for broker in state.replicas}
            for tp, state in found.items()
            if isinstance(state, PartitionState)
        }
        asked: list[PartitionState] = []
        for row in rows:
            state = found.get(row.tp)
            if isinstance(state, PartitionState):
                wanted = brokers_to_ask(row, state, standings[row.tp])
                if wanted:
                    asked.append(state if wanted == state.replicas else state._replace(replicas=wanted))
        before = {broker: self._api.connection(broker) for state in asked for broker in state.replicas}
        logs = await self._api.logs(asked, cluster, likely_epochs(rows))
        for broker, connection in before.items():
            after = self._api.connection(broker)
            self._carried[broker] = after if connection in (None, after) else None
        surveys: dict[TopicPartition, Survey | Unknown | None] = {}
        for row in rows:
            state = found.get(row.tp)
            if not isinstance(state, PartitionState):
                surveys[row.tp] = state
                continue
            reported = logs.get(row.tp, {})
            replicas = tuple(
                Replica(broker, how, reported.get(broker, NOT_ASKED))
                for broker, how in standings[row.tp].items()
            )
            surveys[row.tp] = Survey(state, replicas, NOT_ASKED, row.tp in reassigning)
        return surveys

    def reconnected(self, broker: int) -> bool:
        """Whether the connection that carried that broker's answer is closed: the broker may have restarted."""
        carried = self._carried.get(broker)
        return carried is None or self._api.connection(broker) is not carried


def likely_epochs(rows: Sequence[PlanRow]) -> LikelyEpochs:
    """The epochs of the last records as the plan has them: most logs have not changed since."""
    found: dict[int, dict[TopicPartition, int]] = {}
    for row in rows:
        for candidate in row.candidates:
            if candidate.last_epoch is not None:
                found.setdefault(candidate.broker, {})[row.tp] = candidate.last_epoch
    return found


def _standing(state: PartitionState, broker: int, brokers: Mapping[int, Broker]) -> Standing:
    """As the controller takes it. A fenced broker's replicas are offline: where the list of brokers and the state
    of the partition disagree, the broker was fenced or unfenced between the two readings. It counts as electable,
    so that its log is compared; the state is read once more before the election.
    """
    found = standing(state, broker, brokers)
    changed = found is Standing.FENCED and broker not in state.offline_replicas
    return Standing.ELECTABLE if changed else found


def with_state(survey: Survey, state: PartitionState) -> Survey:
    """The survey with a state that was read later: only that state decides which replicas can be elected."""
    if state.offline_replicas == survey.state.offline_replicas:
        return survey._replace(state=state)
    before, after = survey.state.offline_replicas, state.offline_replicas
    replicas = tuple(
        replica._replace(standing=standing_later(replica, replica.broker in before, replica.broker in after))
        for replica in survey.replicas
    )
    return survey._replace(state=state, replicas=replicas)
