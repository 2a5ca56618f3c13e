"""The command line that does or shows the same as the screen, to be copied into a shell or a chat."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from console.app.session.draft import Draft
from console.app.session.rows import Rows
from console.app.session.session import Session
from console.app.session.view import Choosing
from console.change.registry import DIRS, OFFLINE, PLAN, QUORUM, REPLICAS, TIMELINE
from console.command_words import choice_words, evidence_words
from console.paths import unused
from console.target import Target
from recovery.model import TopicPartition
from recovery.wording.cluster_health_text import stale_reason

MOST_NAMED = 5


def command_line(
    target: Target,
    pane: str,
    *,
    cursor: TopicPartition | None,
    marked: Sequence[TopicPartition],
    rows: Rows,
    draft: Draft,
    evidence: Sequence[str] = (),
    metadata_dir: Path | None = None,
    quorum_first: bool = False,
) -> str:
    """For the current state of the pane. ``evidence`` are the files of disks that count as answers;
    ``metadata_dir`` holds the copied metadata log that the console was given. ``quorum_first``: no controller that
    may be trusted leads, so that what is offline is not known.
    """
    sources = evidence_words(evidence, metadata_dir)
    if pane == PLAN:
        return _plan(target, rows.choosing, draft, sources)
    if pane == REPLICAS and cursor is not None:
        return target.command("replicas", *_named((cursor,)), *sources)
    if pane == OFFLINE:
        if quorum_first and not (marked or rows.others):
            return target.command(*_WHOLE[QUORUM])
        which = _listed(marked, rows)
        return target.command(*which, *(sources if which[0] == "replicas" else ()))
    return target.command(*_WHOLE.get(pane, ("status",)))


def session_command(
    session: Session, pane: str, cursor: TopicPartition | None, marks: Iterable[Hashable]
) -> str:
    """The command for the pane of a session with these marked rows."""
    health = session.view.health
    return command_line(
        session.target,
        pane,
        cursor=cursor,
        marked=sorted(key for key in marks if isinstance(key, TopicPartition)),
        rows=session.rows,
        draft=session.draft,
        evidence=tuple(one.source for one in session.evidence),
        metadata_dir=session.metadata_dir,
        quorum_first=health is not None and health.cut_off is None and bool(stale_reason(health)),
    )


_WHOLE = {QUORUM: ("quorum", "status"), DIRS: ("log-dirs",), TIMELINE: ("timeline",)}
"""The commands that show a whole pane."""


def _listed(marked: Sequence[TopicPartition], rows: Rows) -> tuple[str, ...]:
    """The options that list the same rows; no option selects both offline partitions and those under min ISR."""
    if named := _named(marked):
        return ("replicas", *named)
    if rows.others:
        return ("replicas",)
    if rows.led:
        return ("status",) if rows.offline else ("replicas", "--under-min-isr")
    return ("replicas", "--all-offline-partitions")


def _plan(target: Target, choosing: Choosing, draft: Draft, sources: tuple[str, ...]) -> str:
    if draft.file is not None:
        return target.command("apply", str(draft.file))
    if draft.edited:
        # No option repeats a manual choice, and the plan file is not saved yet: a shell skips this comment.
        return "# save the plan first (w): a leader in it is designated by hand"
    partitions = [] if draft.plan is None else [row.tp for row in draft.plan.rows]
    which = _named(partitions) or ("--all-offline-partitions",)
    made = choosing if draft.plan is None else draft.plan.header
    how = choice_words(made.ranking, made.strategy)
    return target.command("plan", *which, *how, *sources, unused())


def _named(partitions: Sequence[TopicPartition]) -> tuple[str, ...]:
    """Options that name them, where that is possible in one line: partitions of one topic, or few topics."""
    topics = list(dict.fromkeys(tp.topic for tp in partitions))
    if not topics or len(topics) > MOST_NAMED:
        return ()
    if len(topics) == 1 and len(partitions) <= MOST_NAMED:
        numbers = (word for tp in partitions for word in ("--partition", str(tp.partition)))
        return ("--topic", topics[0], *numbers)
    return tuple(word for topic in topics for word in ("--topic", topic))
