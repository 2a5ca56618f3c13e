"""What-if questions for the exposure job: named things that fail together, and another min ISR."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.errors import PipelineError

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
    """``losses``: the questions. ``min_isr``: counted instead of the topics' own; None: their own."""

    losses: tuple[FailedTogether, ...] = ()
    min_isr: int | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """The questions, for the manifest of a result."""
        return {"lose": [loss.text for loss in self.losses], "min_isr": self.min_isr}


NOTHING_ASKED = WhatIf()


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


def check_losses(losses: Sequence[FailedTogether], known: Mapping[str, set[str]]) -> None:
    """Raises PipelineError for a part that no cluster has: a typo must not look like a harmless failure.

    ``known``: the names by kind of failure.
    """
    words = {kind: word for word, kind in KINDS.items()}
    for loss in losses:
        for kind, name in loss.parts:
            if name not in known[kind]:
                there = ", ".join(sorted(known[kind])[:20]) or "none"
                raise PipelineError(
                    f"--lose {loss.text!r}: no cluster here has {words[kind]}={name}; there are {there}"
                )
