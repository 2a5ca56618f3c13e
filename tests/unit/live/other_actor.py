"""One partition, and another actor who may do any one thing to it.

Three replicas, whose logs hold records of two epochs. The controller follows Kafka's rules: the ELR first, then the
first live replica in assignment order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

from recovery.model import NO_LEADER, PartitionState, Standing
from recovery.plan.values import PlanRow
from tests.plan_rows import row as planned_row
from tests.unit.live.one_partition import TP

REPLICAS = (1, 2, 3)
LOGS = ((1, 10), (1, 20), (2, 15))
"""(epoch of the last record, log end)."""
EPOCH = 5

Action = tuple[Any, ...]
WRITE = "carry out the write"
LATE: Action = ("late",)
"""What happens to a request that is not answered, and may be carried out later."""


class Setting(NamedTuple):
    """A cluster as the plan found it: logs by broker, who is live, who answers, and the ELR."""

    logs: tuple[tuple[int, int], ...]
    live: frozenset[int]
    answering: frozenset[int]
    elr: tuple[int, ...] = ()
    native: bool = False


class State(NamedTuple):
    """The cluster's truth. ``pending``: an election of ours that is on its way; ``late_order``: an order
    that is to be written. ``writer``: who wrote the order.
    """

    replicas: tuple[int, ...]
    live: frozenset[int]
    answering: frozenset[int]
    logs: tuple[tuple[int, int], ...]
    processes: tuple[int, ...] = (0, 0, 0)
    elr: tuple[int, ...] = ()
    leader: int = NO_LEADER
    epoch: int = EPOCH
    topic_id: str = "id"
    busy: bool = False
    pending: bool = False
    late_order: tuple[int, ...] = ()
    writer: str = "nobody"

    def log(self, broker: int) -> tuple[int, int]:
        return self.logs[broker - 1] if broker in REPLICAS else (0, 0)

    def led_by(self, leader: int) -> State:
        return self._replace(leader=leader, epoch=self.epoch + 1)

    def elected(self) -> State:
        """Kafka's unclean election; the same state where nobody can be elected."""
        clean = [broker for broker in self.elr if broker in self.live]
        found = clean or [broker for broker in self.replicas if broker in self.live]
        return self.led_by(found[0]) if self.leader == NO_LEADER and found else self

    def partition(self) -> PartitionState:
        dead = tuple(broker for broker in self.replicas if broker not in self.live)
        return PartitionState(
            *TP, self.topic_id, self.leader, self.epoch, self.replicas, (), self.elr, (), dead
        )


# The other actor.


def actions(state: State, setting: Setting) -> Iterator[Action]:
    """Every one thing that may happen to the cluster."""
    for broker in REPLICAS:
        yield ("fence" if broker in state.live else "unfence"), broker
        yield ("mute" if broker in state.answering else "answer"), broker
        if broker in state.live:
            yield "restart", broker, 0
            yield "restart", broker, 5
    if state.pending:
        yield ("carry out",)
    if state.late_order:
        yield (WRITE,)
    if state.topic_id == "id":
        yield ("recreate",)
        yield ("reassign",)
        for order in permutations(REPLICAS):
            if order != state.replicas:
                yield "reorder", order
        if state.leader == NO_LEADER:
            yield ("elect",)
            for broker in sorted(state.live):
                yield "designate", broker


FAULTS: Mapping[str, tuple[Action, ...]] = {
    "write_orders": (
        ("no answer",),
        ("lost",),
        LATE,
        ("refused",),
        ("not allowed",),
        ("die",),
        ("cancel",),
    ),
    "elect": (("no answer",), ("lost",), LATE, ("refused",), ("not allowed",), ("die",), ("cancel",)),
    "states": (("lost",), ("cancel",)),
    "logs": (("lost",), ("cancel",)),
}
"""What may happen to a request: carried out without an answer; not carried out; carried out later; refused."""


def happened(state: State, action: Action) -> State:
    """The cluster after it."""
    name, *of = action
    return _EFFECTS[name](state, *of)


def _fenced(state: State, broker: int) -> State:
    state = state._replace(live=state.live - {broker})
    return state.led_by(NO_LEADER) if state.leader == broker else state


def _unfenced(state: State, broker: int) -> State:
    state = state._replace(live=state.live | {broker})
    return state.led_by(broker) if state.leader == NO_LEADER and broker in state.elr else state


def _written_late(state: State) -> State:
    """The topic's name is all that a write goes by."""
    return state._replace(replicas=state.late_order, late_order=(), writer="ours", busy=False)


def _recreated(state: State) -> State:
    led = min(state.live, default=NO_LEADER)
    return state._replace(topic_id="another", leader=led, epoch=0, replicas=REPLICAS, elr=(), busy=False)


def _restarted(state: State, broker: int, fewer: int) -> State:
    """A new process, which may have lost records that were not flushed. A leader that restarts leads again."""
    at = broker - 1
    epoch, end = state.logs[at]
    logs = (*state.logs[:at], (epoch, end - fewer), *state.logs[at + 1 :])
    processes = (*state.processes[:at], state.processes[at] + 1, *state.processes[at + 1 :])
    return state._replace(logs=logs, processes=processes)


_EFFECTS: Mapping[str, Callable[..., State]] = {
    "fence": _fenced,
    "unfence": _unfenced,
    "mute": lambda state, broker: state._replace(answering=state.answering - {broker}),
    "answer": lambda state, broker: state._replace(answering=state.answering | {broker}),
    "restart": _restarted,
    "carry out": lambda state: state.elected()._replace(pending=False),
    WRITE: _written_late,
    "recreate": _recreated,
    "reassign": lambda state: state._replace(replicas=(*state.replicas, 4), busy=True, writer="other"),
    "reorder": lambda state, order: state._replace(replicas=order, writer="other"),
    "elect": State.elected,
    "designate": State.led_by,
}


def settings() -> Iterator[Setting]:
    """Every cluster in which somebody live answers: logs, who is live, who answers, an ELR, native or not."""
    some = [frozenset(found) for size in (1, 2, 3) for found in combinations(REPLICAS, size)]
    for native, logs, live, answering in product((False, True), product(LOGS, repeat=3), some, some):
        if live & answering:
            gone = tuple(broker for broker in REPLICAS if broker not in live)
            for elr in {(), gone[:1]}:
                yield Setting(logs, live, answering, elr, native)


def start(setting: Setting) -> State:
    return State(REPLICAS, setting.live, setting.answering, setting.logs, elr=setting.elr)


def plan(setting: Setting) -> PlanRow:
    """The best log among the live replicas that answer; the others behind it, by rank, and the silent ones last."""
    state = start(setting)
    answered = {b: state.log(b) for b in REPLICAS if b in setting.answering}
    ranked = sorted(answered, key=lambda b: (b not in setting.live, (-answered[b][0], -answered[b][1]), b))
    order = (*ranked, *(b for b in REPLICAS if b not in answered))
    found = planned_row(state.partition(), order, answered, standings=_standings(setting))
    return found._replace(clean_electors=setting.elr)


def _standings(setting: Setting) -> dict[int, Standing]:
    return {b: Standing.ELECTABLE if b in setting.live else Standing.FENCED for b in REPLICAS}
