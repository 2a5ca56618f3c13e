"""Where rescued records may go: behind the records of their source, or to a topic of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from backends.base.protocol import Backend
from console.errors import InputError
from console.rescue_files.rescued_branch import RescuedBranch
from console.rescue_files.restore_selection import AS_PRODUCED, LARGEST_BY_DEFAULT
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.wording.quantity_text import both, counted

COMPACTED = "compact"
ANY_AGE = (1 << 63) - 1
MIN_ISR = "min.insync.replicas"
INTERNAL = "__"
"""So begin the names of Kafka's own topics."""
RESCUE_TOPIC = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": "104857600",
    "segment.bytes": "1073741824",
    "compression.type": AS_PRODUCED,
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(ANY_AGE),
    "message.timestamp.after.max.ms": str(ANY_AGE),
}
"""What takes the records and keeps them until somebody deletes the topic, whatever their age and size."""
_LARGEST = ("max.message.bytes", "segment.bytes")


@dataclass(frozen=True, slots=True)
class TopicChecks:
    """What a broker checks in batches for a topic beside their size: how old records may be to be accepted, and
    to be retained, and how far in the future, in ms (None: any); ``keys``: each needs a key. ``append_time``: their
    timestamps are replaced. ``packed``: how the broker packs the records before it looks at the batch's size
    (compression.type), and ``min_isr`` the replicas that must be in sync.
    """

    taken_ms: int | None = None
    retained_ms: int | None = None
    ahead_ms: int | None = None
    keys: bool = False
    append_time: bool = False
    packed: str = AS_PRODUCED
    min_isr: int = 0


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """``topic`` is None for the records' own partitions, whose ``states`` are those of now. ``most`` are the bytes
    of the largest batch by topic, ``checks`` what else a broker checks.

    ``creates``: the topic is made first, with so many ``partitions`` and ``replicas`` (-1: the cluster's default).
    """

    topic: str | None
    states: Mapping[TopicPartition, PartitionState]
    most: Mapping[str, int]
    notes: tuple[str, ...] = ()
    creates: bool = False
    partitions: int = 0
    replicas: int = -1
    min_isr: str | None = None
    checks: Mapping[str, TopicChecks] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.topic or "source"

    @property
    def created_text(self) -> str:
        """What is made first, in one line."""
        replicas = (
            "the cluster's default of replicas" if self.replicas < 0 else counted(self.replicas, "replica")
        )
        partitions = counted(self.partitions, "partition")
        return f"topic {self.topic} is created first, with {partitions} and {replicas} of each"

    @property
    def configs(self) -> Mapping[str, str]:
        """Of the topic that is made."""
        return {**RESCUE_TOPIC, **({} if self.min_isr is None else {MIN_ISR: self.min_isr})}

    def partition(self, rescued: RescuedBranch) -> TopicPartition:
        """Where the records of that branch go."""
        tp = rescued.branch.tp
        return TopicPartition(self.topic or tp.topic, tp.partition)


async def source_target(
    cluster: Backend, branches: Sequence[RescuedBranch], *, missing_keys: bool
) -> RestoreTarget:
    """Raises InputError where a topic is not the one that was rescued, or a newer value could be hidden."""
    topics = sorted({one.branch.tp.topic for one in branches})
    states = await _states(cluster, topics)
    for one in branches:
        _refuse_other_partition(one, states.get(one.branch.tp))
    configs = await cluster.topic_configs(topics) if topics else {}
    notes = [
        "what is written back goes behind the records that were written since: the order between them is lost"
    ]
    most, checks = {}, {}
    for topic, config in configs.items():
        if isinstance(config, Unknown):
            raise InputError(f"{topic}: its cleanup.policy is not known ({config}); nothing was sent")
        if topic.startswith(INTERNAL):
            raise InputError(
                f"{topic}: it is internal; write it to another topic with --to-topic; nothing was sent"
            )
        if COMPACTED in config.get("cleanup.policy", "") and not missing_keys:
            raise InputError(
                f"{topic}: it is compacted: an old value written back would take the place of a newer one of the"
                " same key; give --only-keys-missing, or another topic with --to-topic; nothing was sent"
            )
        most[topic] = _largest(config)
        checks[topic] = _checks(config)
    if missing_keys:
        notes.append(
            "a key that is written while this runs gets its old value back, and so does a key that was deleted if"
            " its tombstone is gone already"
        )
    return RestoreTarget(None, states, most, (*notes, *_append_time(checks)), checks=checks)


async def topic_target(cluster: Backend, branches: Sequence[RescuedBranch], topic: str) -> RestoreTarget:
    """Raises InputError where the topic cannot take the records."""
    if topic.startswith(INTERNAL):
        raise InputError(
            f"{topic}: it is internal to Kafka: give another topic with --to-topic; nothing was sent"
        )
    sources = sorted({one.branch.tp.topic for one in branches})
    if len(sources) > 1:
        raise InputError(
            f"the rescue holds {len(sources)} topics ({', '.join(sources[:3])} …): give one of them with --topic;"
            " nothing was sent"
        )
    if topic in sources:
        raise InputError(
            f"{topic}: the records come from this topic; --to-source writes them back to it; nothing was sent"
        )
    wanted = 1 + max((one.branch.tp.partition for one in branches), default=0)
    states = await _states(cluster, [topic, *sources])
    source = [state for tp, state in states.items() if tp.topic in sources]
    if source and wanted > len(source):
        raise InputError(
            f"{sources[0]}: has {counted(len(source), 'partition')}, and the rescue holds partition {wanted - 1} of"
            " it; nothing was sent"
        )
    there = [state for tp, state in states.items() if tp.topic == topic]
    if there and len(there) < wanted:
        raise InputError(
            f"{topic}: has {counted(len(there), 'partition')}, {wanted} are needed; nothing was sent"
        )
    asked = [topic] if there else sources
    config = (await cluster.topic_configs(asked)).get(asked[0]) if asked else None
    known: Mapping[str, str] = {} if config is None or isinstance(config, Unknown) else config
    if there:
        checks = {topic: _checks(known)}
        unread = () if known else (f"what {topic} refuses is not known: its configuration could not be read",)
        notes = (*unread, *_append_time(checks))
        return RestoreTarget(topic, states, {topic: _largest(known)}, notes, checks=checks)
    return RestoreTarget(
        topic,
        states,
        {topic: _largest(RESCUE_TOPIC)},
        creates=True,
        partitions=max(wanted, len(source)),
        replicas=max((len(state.replicas) for state in source), default=-1),
        min_isr=known.get(MIN_ISR),
    )


def _refuse_other_partition(rescued: RescuedBranch, state: PartitionState | None) -> None:
    tp = rescued.branch.tp
    if state is None:
        raise InputError(f"{tp}: there is no such partition, or it may not be seen; nothing was sent")
    if state.topic_id != rescued.branch.topic_id:
        raise InputError(f"{tp}: the topic was deleted and created again; nothing was sent")
    if state.offline:
        raise InputError(f"{tp}: it has no leader yet: elect one first; nothing was sent")


def _largest(config: Mapping[str, str]) -> int:
    configured = [config.get(name, "") for name in _LARGEST]
    return min((int(most) for most in configured if most.isdecimal()), default=LARGEST_BY_DEFAULT)


def _checks(config: Mapping[str, str]) -> TopicChecks:
    """A topic whose broker sets the timestamp takes and keeps records of any age."""
    policy = config.get("cleanup.policy", "delete")
    keys = COMPACTED in policy
    packed, least = config.get("compression.type", AS_PRODUCED), config.get(MIN_ISR, "")
    min_isr = int(least) if least.isdecimal() else 0
    if config.get("message.timestamp.type") == "LogAppendTime":
        return TopicChecks(keys=keys, append_time=True, packed=packed, min_isr=min_isr)
    retention = config.get("retention.ms") if "delete" in policy else None
    before, after = (config.get(f"message.timestamp.{way}.max.ms") for way in ("before", "after"))
    ages = (_age(before), _age(retention), _age(after))
    return TopicChecks(*ages, keys, packed=packed, min_isr=min_isr)


def _append_time(checks: Mapping[str, TopicChecks]) -> Iterator[str]:
    topics = ", ".join(sorted(topic for topic, one in checks.items() if one.append_time))
    if topics:
        yield f"brokers set the time of each record anew: message.timestamp.type of {topics} is LogAppendTime"


def too_few_text(topic: str, state: PartitionState, least: int) -> str | None:
    """What to do where min.insync.replicas lets a leader take nothing; None where enough replicas are in sync."""
    missing = sorted(set(state.replicas) - set(state.isr))
    if not missing or len(state.isr) >= least:
        return None
    away = f"{'brokers' if len(missing) > 1 else 'broker'} {both(missing)} not"
    return (
        f"{MIN_ISR} is {least}, and {len(state.isr)} of {len(state.replicas)} replicas"
        f" {'is' if len(state.isr) == 1 else 'are'} in sync, {away}: bring back who is missing, or set"
        f" {MIN_ISR} of {topic} lower for the time of the restore; then run the same command again"
    )


def _age(configured: str | None) -> int | None:
    """None without a limit: -1, or the largest number that Kafka's configuration holds."""
    return (
        int(configured)
        if configured is not None and configured.isdecimal() and int(configured) < ANY_AGE
        else None
    )


async def _states(cluster: Backend, topics: list[str]) -> dict[TopicPartition, PartitionState]:
    return {state.tp: state for state in (await cluster.partitions(topics)).states} if topics else {}
