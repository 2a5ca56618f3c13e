"""The active controller.

:mod:`recovery.controller` decides every request on the newest state; the change is appended to the metadata log
and answered when it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from backends.simulator.committed_records import config_steps
from backends.simulator.context import Context
from backends.simulator.controller.broker_sessions import BrokerSessions
from backends.simulator.controller.controller_elections import PeriodicElections, UncleanRecovery
from backends.simulator.controller.metadata_changes import (
    Then,
    assign_directories,
    change_config,
    create_topic,
    delete_topic,
    update_feature,
)
from backends.simulator.events import MetadataWritten
from backends.simulator.messages import (
    AlterPartitions,
    AlterPartitionsReply,
    AssignDirectories,
    CreateTopic,
    DeleteTopic,
    Done,
    ElectLeaders,
    ElectLeadersReply,
    Heartbeat,
    MetadataUpdate,
    NotController,
    Reassign,
    ReassignReply,
    RegisterBroker,
    SetConfig,
    UpdateFeature,
)
from backends.simulator.partition_table import generation_of
from backends.simulator.rpc import Answer, RpcEndpoint
from recovery.controller.alter_partition import AlterPartition, alter_partitions, check_sender
from recovery.controller.cluster_image import Effect
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.elect_leaders import ElectionRequest, elect_leaders
from recovery.controller.reassignment import cancel, reassign
from recovery.controller.registration import PartitionChange
from recovery.model import TopicPartition


class ActiveController:
    """Lives while its controller leads the metadata log."""

    def __init__(
        self, context: Context, endpoint: RpcEndpoint, state: MetadataUpdate, committed: Callable[[], None]
    ) -> None:
        self.image = state.image
        self._context = context
        self._node = endpoint.node
        self._last_epoch = state.last_epoch
        self._closed = False
        self._committed = committed
        loop, config = context.loop, context.config
        self._sessions = BrokerSessions(self, loop, config.broker_session_timeout)
        self.recovery = UncleanRecovery(self, loop, config, endpoint)
        self._periodic = PeriodicElections(self, loop, config)

    def close(self) -> None:
        self._closed = True
        self._sessions.close()
        self.recovery.close()
        self._periodic.close()

    def handle(self, body: Any, answer: Answer) -> None:
        """Handle one request. The answer may come later, or never if the leadership is lost."""
        if isinstance(body, Heartbeat):
            self._sessions.heartbeat(body, answer)
        elif isinstance(body, AlterPartitions):
            self._alter_partitions(body, answer)
        elif isinstance(body, RegisterBroker):
            self._sessions.register(body, answer)
        elif isinstance(body, AssignDirectories):
            self._assign_directories(body, answer)
        elif isinstance(body, ElectLeaders):
            self._elect(body, answer)
        elif isinstance(body, Reassign):
            self._reassign(body, answer)
        elif isinstance(body, (SetConfig, UpdateFeature, CreateTopic, DeleteTopic)):
            self._configure(body, answer)
        else:
            raise TypeError(f"no request of a controller: {body!r}")

    def next_broker_epoch(self) -> int:
        """A broker epoch that no broker ever had."""
        self._last_epoch += 1
        return self._last_epoch

    def write(
        self,
        effect: Effect,
        why: str,
        *,
        then: Then | None = None,
        otherwise: Then | None = None,
        brokers: Iterable[int] = (),
        created: Sequence[TopicPartition] = (),
    ) -> None:
        """Make ``effect`` the newest state and append it. ``then`` runs when it is committed, ``otherwise`` if
        the leadership was lost before.
        """
        if self._closed:
            # A timer of an earlier leadership must not write in the next one.
            if otherwise is not None:
                otherwise()
            return
        before = self.image
        touched = (*effect.changes, *created)
        self.image = effect.image
        moved = (tp for tp, change in effect.changes.items() if change.replicas is not None)
        placed = frozenset((*moved, *created))
        now = self._context.loop.now
        configs = tuple(config_steps(before, effect.image))
        update = MetadataUpdate(
            effect.image, touched, tuple(brokers), self._last_epoch, why, placed, now, configs
        )
        self._context.emit(MetadataWritten(before, effect.image, effect.changes, why))

        def done(committed: bool) -> None:
            if committed:
                self._committed()
            follow = then if committed else otherwise
            if follow is not None:
                follow()

        self._context.metadata.append(self._node.id, update, done)
        if self._closed:
            return  # the metadata disk failed during the append
        if update.brokers or before.rules is not effect.image.rules:
            self.recovery.reconsider_all()
        else:
            self.recovery.reconsider(touched)

    def write_or_go_on(
        self, effect: Effect, why: str, answer: Answer, reply: Any, created: Sequence[TopicPartition] = ()
    ) -> None:
        """Answer ``reply`` when ``effect`` is committed, or at once if it changes nothing."""
        if effect.image is self.image:
            answer(reply)
            return
        self.write(
            effect,
            why,
            then=lambda: answer(reply),
            otherwise=lambda: answer(NotController(None)),
            created=created,
        )

    def _alter_partitions(self, body: AlterPartitions, answer: Answer) -> None:
        refusal = check_sender(self.image.brokers, body.broker, body.epoch)
        if refusal is not None:
            answer(AlterPartitionsReply(refusal))
            return
        asked, deleted = self._of_topics_that_exist(body)
        outcomes, effect = alter_partitions(self.image, asked)
        for tp, outcome in outcomes.items():
            if outcome.refusal is not None:
                self._context.history.add(self._node, f"refused {body.broker} {tp}: {outcome.refusal}")
        answers = [(tp, outcome.refusal, outcome.partition) for tp, outcome in outcomes.items()]
        reply = AlterPartitionsReply(None, (*answers, *deleted))
        self.write_or_go_on(effect, f"ISR as {body.broker} asks", answer, reply)

    def _of_topics_that_exist(
        self, body: AlterPartitions
    ) -> tuple[dict[TopicPartition, AlterPartition], list[tuple[TopicPartition, ControllerRefusal, None]]]:
        """What is asked of present topics, and the refusals for earlier topics of the same names."""
        asked, deleted = {}, []
        refusal = ControllerRefusal(ControllerError.UNKNOWN_TOPIC_ID, "the topic was deleted")
        for (tp, request), generation in zip(body.requests, body.generations, strict=True):
            if generation == generation_of(self.image, tp.topic):
                asked[tp] = request
            else:
                deleted.append((tp, refusal, None))
        return asked, deleted

    def _assign_directories(self, body: AssignDirectories, answer: Answer) -> None:
        refusal = check_sender(self.image.brokers, body.broker, body.epoch)
        if refusal is not None:
            answer(Done(refusal))
            return
        effect = assign_directories(self.image, body)
        self.write_or_go_on(effect, f"directories of {body.broker}", answer, Done(None))

    def _elect(self, body: ElectLeaders, answer: Answer) -> None:
        partitions = None if body.partitions is None else dict(body.partitions)
        outcome = elect_leaders(self.image, ElectionRequest(body.kind, partitions))
        reply = ElectLeadersReply(outcome.refusals)
        self.write_or_go_on(outcome.effect, f"{body.kind.value.lower()} election", answer, reply)

    def _reassign(self, body: Reassign, answer: Answer) -> None:
        image = self.image
        changes: dict[TopicPartition, PartitionChange] = {}
        refusals: dict[TopicPartition, ControllerRefusal | None] = {}
        for tp, target in body.targets:
            if target is None:
                outcome = cancel(image, tp)
            else:
                allow = body.allow_replication_factor_change
                outcome = reassign(image, tp, target, allow_replication_factor_change=allow)
            refusals[tp] = outcome.refusal
            image = outcome.effect.image
            changes.update(outcome.effect.changes)
        self.write_or_go_on(Effect(image, changes), "reassignment", answer, ReassignReply(refusals))

    def _configure(self, body: SetConfig | UpdateFeature | CreateTopic | DeleteTopic, answer: Answer) -> None:
        if isinstance(body, SetConfig):
            where = body.topic if body.broker is None else f"broker {body.broker}"
            outcome, why = change_config(self.image, body), f"{body.name}={body.value} {where}".rstrip()
        elif isinstance(body, UpdateFeature):
            outcome, why = update_feature(self.image, body), f"{body.feature}={body.level}"
        elif isinstance(body, CreateTopic):
            outcome, why = create_topic(self.image, body), f"topic {body.topic}"
        else:
            outcome, why = delete_topic(self.image, body), f"no topic {body.topic} any more"
        if isinstance(outcome, ControllerRefusal):
            answer(Done(outcome))
            return
        touched: list[TopicPartition] = []
        if isinstance(body, CreateTopic):
            touched = [TopicPartition(body.topic, number) for number in range(len(body.assignments))]
        elif isinstance(body, DeleteTopic):
            touched = [tp for tp in self.image.partitions if tp.topic == body.topic]
        self.write_or_go_on(outcome, why, answer, Done(None), touched)
