"""A script file: topics, then steps; after each step both sides settle and are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

SCRIPTS = Path(__file__).parent / "scripts"


class Strict(BaseModel):
    """A misspelt key is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Topic(Strict):
    """One partition for each entry of ``replicas``. ``min_isr`` None: the topic has no value of its own."""

    name: str
    replicas: tuple[tuple[int, ...], ...]
    min_isr: int | None = 1


class Where(Strict):
    """A partition, the first one unless said otherwise."""

    topic: str
    partition: int = 0


class Produce(Where):
    """``records``, each of which must be acknowledged; ``refused``: for want of replicas in the ISR none is.
    ``at``: by this broker, of which the producer hears alone; else by the leader.
    """

    records: int
    at: int | None = None
    acks: Literal["0", "1", "all"] = "all"
    refused: bool = False


class Elect(Where):
    """An election as Kafka's own tool asks for it. ``held``: whether one is held, None where either may be."""

    kind: Literal["preferred", "unclean"]
    held: bool | None = True


class Designate(Where):
    """The election of one replica, as the product makes it on that cluster."""

    leader: int


class MinIsr(Strict):
    topic: str
    value: int


class BrokerMinIsr(Strict):
    """Set dynamically for one broker; a value of None removes it."""

    broker: int
    value: int | None


class Describe(Strict):
    """min.insync.replicas of the topic as each of these brokers itself describes it."""

    topic: str
    min_isr: dict[int, int]


class Config(Strict):
    """A topic's, by Kafka's name."""

    topic: str
    name: str
    value: str


class Reassign(Where):
    """Other replicas; None cancels a reassignment in progress."""

    replicas: tuple[int, ...] | None


class DeleteRecords(Where):
    before: int


class Disk(Strict):
    """Log dir ``index`` of a broker. The partition that an even broker-local number was given is in log dir 0."""

    broker: int
    index: int = 1


class VoterChange(Strict):
    """A voter to be added or removed: ``first`` led when the script began, ``second`` and ``third`` are the others.
    ``refused`` is the error, by Kafka's name. ``by_disk``: what is removed is the disk that it has now, be it the
    voter's or not.
    """

    controller: str
    refused: str | None = None
    by_disk: bool = False


class Transact(Where):
    """The producer with that transactional id writes in its open transaction, or begins one."""

    id: str
    records: int


class EndTransaction(Strict):
    """Decided by the coordinator, with a marker in every partition that can take one."""

    id: str
    outcome: Literal["commit", "abort"]


class Transaction(Strict):
    """A transaction that is open in a partition's log: what became of it, and how sure that is."""

    ending: str
    certain: bool
    start: int


class Transactions(Where):
    """What is open in a partition, and how far read_committed consumers read."""

    open: tuple[Transaction, ...] = ()
    last_stable: int
    high_watermark: int


class Marker(Where):
    """WriteTxnMarkers to the leader, for the one transaction that is open in the partition.

    ``newer``: with the next epoch of the producer, or of the coordinator. The same marker with the present epoch is
    refused then.
    """

    commit: bool
    newer: Literal["producer", "coordinator"] | None = None


class Shown(Strict):
    """What the partition comes to show; what is not named is only compared."""

    leader: int | None = None
    isr: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    ends: dict[int, int] | None = None


BESIDE = frozenset({"shows", "led"})
"""What a step may say beside the thing that happens."""


class Step(Strict):
    """Exactly one thing that happens, and what it comes to (``topic-partition`` by name).

    ``flush``: all that was written so far is on the disks, and outlasts a loss of power. ``elr``: the level of
    eligible.leader.replicas.version. ``pause``: nobody hears anything of the broker any more, as behind a cut.
    ``cut_off``: no controller and no other broker hears it, and clients do; ``mend`` ends all such cuts.
    ``led``: whether the quorum has a leader afterwards. ``make_again``: the topic of that name is deleted, and
    another of it created.
    """

    produce: Produce | None = None
    kill: tuple[int, ...] | None = None
    shut_down: tuple[int, ...] | None = None
    pause: tuple[int, ...] | None = None
    resume: tuple[int, ...] | None = None
    cut_off: tuple[int, ...] | None = None
    mend: Literal[True] | None = None
    power_off: tuple[int, ...] | None = None
    flush: Literal[True] | None = None
    start: tuple[int, ...] | None = None
    elect: Elect | None = None
    designate: Designate | None = None
    min_isr: MinIsr | None = None
    broker_min_isr: BrokerMinIsr | None = None
    make_again: Topic | None = None
    describe: Describe | None = None
    config: Config | None = None
    elr: Literal[0, 1] | None = None
    reassign: Reassign | None = None
    delete_records: DeleteRecords | None = None
    transact: Transact | None = None
    end_transaction: EndTransaction | None = None
    transactions: Transactions | None = None
    marker: Marker | None = None
    break_disk: Disk | None = None
    replace_disk: Disk | None = None
    add_voter: VoterChange | None = None
    remove_voter: VoterChange | None = None
    kill_controller: str | None = None
    start_controller: str | None = None
    new_disk_controller: str | None = None
    shows: dict[str, Shown] = Field(default_factory=dict)
    led: bool = True

    @model_validator(mode="after")
    def _one_thing(self) -> Step:
        if len(self.model_fields_set - BESIDE) != 1:
            raise ValueError("one thing a step")
        return self

    def __str__(self) -> str:
        (name,) = self.model_fields_set - BESIDE
        return f"{name} {getattr(self, name)}"


class Script(Strict):
    """``about`` says what the story is. With ``quorum`` it is about controllers, and their quorum is compared; with
    ``auto_join`` they join by themselves (KIP-853, ``controller.quorum.auto.join.enable``). With ``cuts`` it needs
    links that can be cut.
    """

    about: str
    quorum: bool = False
    auto_join: bool = False
    cuts: bool = False
    topics: tuple[Topic, ...]
    steps: tuple[Step, ...]


def names(quorum: bool = False, auto_join: bool = False, cuts: bool = False) -> list[str]:
    """The scripts about partitions, or those about the quorum; those in which controllers join by themselves; those
    that cut links.
    """
    found = {path.stem: read(path.stem) for path in sorted(SCRIPTS.glob("*.yaml"))}
    return [
        name
        for name, script in found.items()
        if (script.quorum, script.auto_join, script.cuts) == (quorum, auto_join, cuts)
    ]


def read(name: str) -> Script:
    return Script.model_validate(yaml.safe_load((SCRIPTS / f"{name}.yaml").read_text(encoding="utf-8")))
