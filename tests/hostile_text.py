"""One list of hostile texts, and a cluster whose brokers tell one of them wherever a text can stand.

Every surface that shows, writes or names something is held against every text of the list.
"""

from __future__ import annotations

# ruff: noqa: ARG002  # the signatures are the protocol's
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backends.base.answers import (
    ClusterInfo,
    LogDir,
    LogDirReplica,
    Reassignment,
    SurveyRequest,
    SurveyResult,
)
from backends.base.protocol import Progress
from recovery.model import Broker, ReplicaLog, Unknown, Why
from tests.repetitions import soaking
from tests.unit.cli.memory_backend import MemoryBackend, cluster_of, log, offline

_CONTROL_SEQUENCES = ("\x1b[2J\x1b[31mred", "\x1b]52;c;cm0gLXJm\x07", "over\rwritten", "\x9b2J")
_FORMAT_CHARACTERS = ("\u202egnp.nalp", "zero\u200bwidth", "\u2028separated")
_MARKDOWN = ("| a | b |", "`code` **bold**", "[here](http://elsewhere)")
_MARKUP = ("[bold red]markup[/]", "<script>alert(1)</script>")
_KINDS = (_CONTROL_SEQUENCES, _FORMAT_CHARACTERS, _MARKDOWN, _MARKUP)

HOSTILE = (
    "two\nlines",
    "a\x00b",
    "../../../etc/passwd",
    "/etc/passwd",
    "x" * 5_000,
    # What is handled alike is one text in ``make test``, and each is a text in ``make soak``.
    *((text for kind in _KINDS for text in kind) if soaking() else map("".join, _KINDS)),
)


def drives_a_terminal(text: str) -> set[str]:
    """Characters other than line ends that do something instead of being shown."""
    found = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return found - {"\t"}


@dataclass
class HostileBackend(MemoryBackend):
    """``text`` stands for every name and message that brokers tell. Broker 3 does not answer."""

    text: str = ""

    async def cluster(self) -> ClusterInfo:
        brokers = tuple(Broker(b, self.text, 9000 + b, self.text, False) for b in self.logs)
        return ClusterInfo(self.text, brokers, 1, True, self.text)

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        return {topic: {"min.insync.replicas": "2", "cleanup.policy": self.text} for topic in topics}

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        found = await super().survey(request, progress)
        contacts = tuple(one._replace(address=self.text, call=self.text) for one in found.contacts)
        return replace(found, contacts=contacts)

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        replicas = [LogDirReplica(tp, 10, 0, False) for tp in self.states]
        return {
            1: (LogDir(1, self.text, self.text, -1, -1, ()),),
            2: (LogDir(2, self.text, None, 100, 10, replicas),),
            3: Unknown(Why.NOT_ANSWERED, self.text),
        }

    async def quorum(self) -> Unknown:
        return Unknown(Why.FAILED, self.text)

    async def reassignments(self, partitions: object = None) -> tuple[Reassignment, ...] | Unknown:
        return self.moving


def hostile_backend(text: str) -> HostileBackend:
    """Three partitions without a leader, one of a topic whose name is ``text``."""
    silent = Unknown(Why.NOT_ANSWERED, text)
    hostile: ReplicaLog = log(100)._replace(log_dir=text)
    backend = HostileBackend(dict(cluster_of(2).states), text=text)
    backend.logs = {1: hostile, 2: hostile._replace(lineage=Unknown(Why.NOT_ALLOWED, text)), 3: silent}
    state = offline(text, 0)
    backend.states[state.tp] = state
    backend.hidden = (text,)
    return backend
