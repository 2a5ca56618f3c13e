"""What was on a failed log dir, and what would happen if a healthy one failed: by the controller's own rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backends.base.answers import LogDir
from backends.base.protocol import Backend
from console.actions.examine import Configs
from console.app.view import View
from recovery.controller.predict import if_fails, view_of
from recovery.controller.rules import Rules
from recovery.min_isr import effective_min_isr
from recovery.model import NO_LEADER, PartitionState, Replica, Survey, Unknown, Why
from recovery.standing import standing
from widgets.dirs import DirDetail, PartitionOutcome, What

_NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")
_WORST = list(What)


async def dir_detail(backend: Backend, view: View, rules: Rules, broker: int, path: str) -> DirDetail:
    """Asks for the topics' configurations, and predicts; on the backend's thread, for a dir may hold thousands."""
    one = _dir(view, broker, path)
    if one is None or view.partitions is None:
        return DirDetail(broker, path, False, (), "this log dir is no longer there")
    if one.error is not None:
        return DirDetail(broker, path, True, tuple(_sorted(_was_on(view, broker, path))), _FAILED_NOTE)
    names = {replica.tp for replica in one.replicas if not replica.future}
    states = [state for state in view.partitions.states if state.tp in names]
    configs = await backend.topic_configs(tuple(dict.fromkeys(state.topic for state in states)))
    found = (_outcome(view, rules, configs, state, broker) for state in states)
    return DirDetail(broker, path, False, tuple(_sorted(found)), _NOTE)


_NOTE = "predicted by the controller's rules from the state of now, if nothing else fails"
_FAILED_NOTE = (
    "the broker does not tell what was on a failed dir: these are the replicas of this broker that the controller"
    " counts as offline"
)


def _dir(view: View, broker: int, path: str) -> LogDir | None:
    dirs = (view.log_dirs or {}).get(broker, ())
    return None if isinstance(dirs, Unknown) else next((one for one in dirs if one.path == path), None)


def _was_on(view: View, broker: int, path: str) -> Iterator[PartitionOutcome]:
    assert view.partitions is not None
    elsewhere = _held_elsewhere(view, broker, path)
    for state in view.partitions.states:
        if broker in state.offline_replicas and state.tp not in elsewhere:
            what = What.OFFLINE if state.offline else What.FEWER
            if len(state.replicas) == 1:
                what = What.LAST_COPY
            yield PartitionOutcome(state.tp, what, state.leader, state.leader)


def _held_elsewhere(view: View, broker: int, path: str) -> frozenset[object]:
    """What the broker tells of its other dirs is not on the failed one."""
    dirs = (view.log_dirs or {}).get(broker, ())
    if isinstance(dirs, Unknown):
        return frozenset()
    return frozenset(replica.tp for one in dirs if one.path != path for replica in one.replicas)


def _outcome(
    view: View, rules: Rules, configs: Configs, state: PartitionState, broker: int
) -> PartitionOutcome:
    before = state.leader
    if len(state.replicas) == 1:
        return PartitionOutcome(state.tp, What.LAST_COPY, before, NO_LEADER)
    brokers = view.brokers
    replicas = tuple(
        Replica(number, standing(state, number, brokers), _NOT_ASKED) for number in state.replicas
    )
    min_isr = effective_min_isr(state, configs.get(state.topic, _NOT_ASKED))
    seen = view_of(Survey(state, replicas, min_isr), rules)
    if isinstance(seen, Unknown):
        return PartitionOutcome(state.tp, What.FEWER, before, before, note=f"min ISR is not known ({seen})")
    after = if_fails(seen, [broker])
    return PartitionOutcome(
        state.tp,
        _what(before, after.partition.leader, after.under_min_isr, broker, state),
        before,
        after.partition.leader,
        after.unclean,
    )


def _what(before: int, after: int, under: bool, broker: int, state: PartitionState) -> What:
    if after == NO_LEADER:
        return What.OFFLINE
    if under:
        return What.UNDER_MIN_ISR
    if after != before:
        return What.NEW_LEADER
    return What.FEWER if broker in state.isr else What.UNCHANGED


def _sorted(outcomes: Iterable[PartitionOutcome]) -> list[PartitionOutcome]:
    return sorted(outcomes, key=lambda outcome: (_WORST.index(outcome.what), outcome.tp))
