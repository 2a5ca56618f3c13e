"""What-if questions for the exposure job: named things that fail together, brokers that are drained, another min
ISR, and the ELR on or off.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.errors import PipelineError
from recovery.wording.quantity_text import both

WHAT_IF = "what if"
"""The kind of failure of a question."""

KINDS = {"broker": "broker", "rack": "rack", "dir": "log dir"}
"""What can be lost: the word of the question, and the kind of failure."""

_AND = re.compile(rf",(?=(?:{'|'.join(KINDS)})=)")


class FailedTogether(NamedTuple):
    """Things that fail at once: ``parts`` as (kind of failure, name); ``text`` is the question as it was asked."""

    text: str
    parts: tuple[tuple[str, str], ...]


class WhatIf(NamedTuple):
    """``losses``: the questions. ``min_isr``: counted instead of the topics' own; None: their own. ``drained``:
    brokers that were shut down in a controlled way before anything fails. ``elr``: counted as if the cluster had
    the ELR, or had it not; None: as the snapshot says. Nobody is put into an ELR that the snapshot does not show.
    """

    losses: tuple[FailedTogether, ...] = ()
    min_isr: int | None = None
    drained: tuple[int, ...] = ()
    elr: bool | None = None

    @property
    def drain_text(self) -> str:
        """The question what the drain itself takes."""
        return ",".join(f"drain={broker}" for broker in self.drained)

    @property
    def questions(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """What is lost in each question that gets an answer, in order."""
        drain = tuple(("broker", str(broker)) for broker in self.drained)
        first = {self.drain_text: drain} if drain else {}
        return first | {loss.text: loss.parts for loss in self.losses}

    @property
    def asked(self) -> dict[str, Any]:
        """The questions, for the row of a run."""
        return {
            "lose": [loss.text for loss in self.losses],
            "min_isr": self.min_isr,
            "drain": list(self.drained),
            "elr": self.elr,
        }

    @property
    def assumed(self) -> tuple[str, ...]:
        """What every count of this result assumes, in words; empty: the clusters as they are."""
        parts = []
        if self.min_isr is not None:
            parts.append(f"min ISR of every topic were {self.min_isr}")
        if self.drained:
            parts.append(f"{_brokers(self.drained)} were shut down before anything fails")
        if self.elr is not None:
            parts.append(f"the ELR were {'on' if self.elr else 'off'}")
        return tuple(parts)


def _brokers(found: Sequence[int]) -> str:
    return f"broker{'s' if len(found) > 1 else ''} {both(found)}"


NOTHING_ASKED = WhatIf()


def what_if_from(asked: Mapping[str, Any]) -> WhatIf:
    """From :attr:`WhatIf.asked`, also of an earlier version. Raises PipelineError."""
    return WhatIf(
        parsed_losses(asked.get("lose", ())),
        asked.get("min_isr"),
        tuple(asked.get("drain", ())),
        asked.get("elr"),
    )


def parsed_losses(texts: Sequence[str]) -> tuple[FailedTogether, ...]:
    """``rack=b,broker=7`` are two that fail at once; a log dir is ``dir=7:/kafka``. Raises PipelineError."""
    return tuple(_parsed(text) for text in dict.fromkeys(texts))


def _parsed(text: str) -> FailedTogether:
    parts = []
    for part in _AND.split(text):
        word, sign, name = part.partition("=")
        if word not in KINDS or not sign or not name:
            raise PipelineError(
                f"--lose {text!r}: give what fails together, such as broker=7, rack=b,broker=7 or dir=7:/kafka"
            )
        parts.append((KINDS[word], name))
    return FailedTogether(text, tuple(parts))


def loss_part(kind: str, name: str) -> str:
    """What is lost, as in a question: ``broker=7``."""
    return f"{next(word for word, its_kind in KINDS.items() if its_kind == kind)}={name}"


def check_names(what_if: WhatIf, clusters: Collection[Mapping[str, Collection[str]]]) -> None:
    """Raises PipelineError for a name that no cluster has: a typo must not look like a harmless failure.

    ``clusters``: the names of each, by kind of failure.
    """
    drained = ((f"--drain {broker}", "broker", str(broker)) for broker in what_if.drained)
    lost = ((f"--lose {loss.text!r}", *part) for loss in what_if.losses for part in loss.parts)
    for option, kind, name in (*drained, *lost):
        if not any(name in names[kind] for names in clusters):
            known = sorted({one for names in clusters for one in names[kind]})
            there = ", ".join(known[:20]) or "none"
            raise PipelineError(f"{option}: no cluster here has {loss_part(kind, name)}; there are {there}")
