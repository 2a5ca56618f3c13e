"""What to press, for somebody who is new to the console: a few lines above the footer, one step at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from console.app.session.draft import Draft, DraftRescue
from console.app.session.safety import Safety
from console.app.session.view import View
from console.change.registry import BROKERS, BY_NAME, DIRS, OFFLINE, PLAN, QUORUM, REPLICAS
from console.jobs.elect.plan_text import ACKS_REFUSED
from recovery.cluster_health import QuorumState
from recovery.model import Survey, TopicPartition
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind, Strategy, WhyNot, decide
from recovery.wording.quantity_text import counted, ids


class GuideState(NamedTuple):
    """What the next step depends on. ``asking``: a question or another window is open above the panes. ``why_not``
    returns why an action's key is disabled, "" if it works. ``cursor`` is the partition that pane 2 shows.
    ``choice``: the answers of that question, "" where it is no choice among some. ``elects``: what is to be done
    first is an election.
    """

    pane: str
    asking: bool
    view: View
    draft: Draft
    safety: Safety
    why_not: Callable[[str], str]
    cursor: TopicPartition | None
    ranking: Ranking
    choice: str = ""
    elects: bool = True


def step(now: GuideState) -> str:
    """The next key to press in the current state; it never runs ahead of what was done, and names no key that is
    disabled.
    """
    view, draft = now.view, now.draft
    if now.asking:
        return _asked(now.choice)
    if view.at is None:
        return "Guide: the cluster is being read."
    if draft.outcomes and all(outcome.good for outcome in draft.outcomes.values()):
        return _after(now)
    if draft.plan is not None and draft.plan.rows:
        return _planned(now)
    if view.health is not None and not view.health.current:
        return _no_quorum(now)
    return _choosing(now) if view.offline else _nothing_offline(now)


def _asked(answers: str) -> str:
    """The keys of a question; of a choice among ``answers``, also what their words mean."""
    if not answers:
        return "Guide: answer what is asked above, or read it; Esc goes back, and nothing is changed."
    means = {"old": "written under an earlier leader", "NEWER": "written under a later one"}
    words = [f"{word}: {what}" for word, what in means.items() if re.search(rf"\b{word}\b", answers)]
    explained = f" {', '.join(words)}." if words else ""
    return f"Guide: answer what is asked: Up, Down, Enter; Esc changes nothing.{explained}"


def _nothing_offline(now: GuideState) -> str:
    """Points at the pane of what is wrong all the same."""
    health, pane = now.view.health, now.pane
    if health is None or health.well:
        return "Guide: nothing is offline. Press 4 for the quorum, 5 for the disks, ? for every key."
    none = "Guide: nothing is offline" if health.sees_all else "Guide: no offline partition was seen"
    new_disks = health.quorum.new_disks
    voters = set(health.quorum.dead_voters).difference(new_disks) or health.quorum.dead_addresses
    not_up = health.brokers_down or health.brokers_fenced
    troubles = (
        (health.under_min_isr, OFFLINE, "what is under min ISR"),
        (voters, QUORUM, "the voters that are down"),
        (not voters and new_disks, QUORUM, "the controllers without a vote"),
        (health.failed_dirs, DIRS, "the failed disks"),
        (not_up, BROKERS, "the brokers that are not up"),
        (not not_up and health.brokers_unreached, BROKERS, "the brokers that are not reached from here"),
    )
    wrong = [(key, what) for found, key, what in troubles if found]
    if not wrong:
        return f"{none}. Press 4 for the quorum, 5 for the disks, ? for every key."
    elsewhere = [f"{key} for {what}" for key, what in wrong if key != pane]
    replaces = pane in (QUORUM, DIRS) and not now.why_not("replace")
    how = "; press M to replace it step by step" if replaces else ""
    here = f" What is wrong is listed here{how}." if len(elsewhere) < len(wrong) else ""
    press = f" Press {', '.join(elsewhere)}." if elsewhere else " Press ? for every key."
    return f"{none}.{here}{press}"


def _no_quorum(now: GuideState) -> str:
    health, here = now.view.health, now.pane == QUORUM
    if health is not None and health.cut_off is not None:
        press = "Look" if here else "Press 4, and look"
        return (
            f"Guide: the broker that answers is cut off from the controllers. {press} at its network first."
        )
    if health is not None and health.quorum.state is QuorumState.OLD_VOTERS:
        where = "The line above says" if here else "Press 4: it says"
        return f"Guide: a rebuild replaced the voters that lead here. {where} whom to stop."
    if health is not None and health.quorum.state is QuorumState.NOT_REACHED_BY_BROKERS:
        where = "The lines above say" if here else "Press 4: it says"
        return f"Guide: a controller leads that the brokers do not reach. {where} what to change."
    unreached = health is not None and health.quorum.state is QuorumState.UNREACHABLE
    lost = (
        "Guide: no controller that leads can be reached."
        if unreached
        else "Guide: the quorum is lost, so nobody can be elected."
    )
    return (
        f"{lost} The controllers that must answer are listed here; M shows the ways back."
        if here
        else (f"{lost} Press 4 to see which controllers answer.")
    )


def _after(now: GuideState) -> str:
    verify = "V verifies" if now.pane in BY_NAME["verify"].panes else "6, then V verifies"
    if now.view.offline:
        return f"Guide: elected. r reads the cluster again; {verify} the result."
    under = _under_min_isr(now.view, now.draft)
    if under:
        return f"Guide: elected; {under}: {ACKS_REFUSED}. r reads the cluster again; {verify} the result."
    if now.draft.rescue is not None:
        return _rescued(now.draft.rescue, now.pane, armed=now.safety.armed)
    if now.draft.clients:
        return f"Guide: elected; {now.draft.clients}. {verify} again when that is done."
    copy = "" if now.why_not("copy_command") else ", Y copies the command line of what you see"
    return f"Guide: recovered. J shows the journal{copy}, q leaves."


def _rescued(rescue: DraftRescue, pane: str, *, armed: bool) -> str:
    offsets, newer, restored = rescue.offsets, rescue.newer, rescue.restored
    if restored is None:
        steps = [
            *([] if pane in BY_NAME["restore"].panes else ["6"]),
            *([] if armed else ["A to arm the console"]),
            "B",
        ]
        press = f"Press {', then '.join(steps)}"
        return (
            f"Guide: elected, and the {offsets:,} offsets that this cut off are saved. {press} to write them back"
            " behind what is there now."
        )
    there = newer + restored
    if restored != offsets:
        return f"Guide: {restored:,} records of the {offsets:,} rescued offsets are there again. q leaves."
    apart = f"{newer:,} on the new leader, {restored:,} written back"
    found = f"{there:,} of {newer + offsets:,} records are there ({apart})"
    if rescue.unread:
        disk = "its disk is" if len(rescue.unread) == 1 else "their disks are"
        return (
            f"Guide: {found}. What only {ids(rescue.unread)} holds is not known until {disk} read (ktriage disk"
            " scan). q leaves."
        )
    return f"Guide: nothing is lost: {found}. J shows the journal, q leaves."


def _under_min_isr(view: View, draft: Draft) -> str:
    """The first of the plan's partitions that has a leader and too few in-sync replicas; "" if none is known."""
    for state in view.troubled:
        survey = view.surveys.get(state.tp) if state.tp in draft.partitions else None
        least = None if survey is None else survey.min_isr
        if isinstance(least, int) and len(state.isr) < least:
            return f"{state.tp} has ISR {len(state.isr)} of min ISR {least}"
    return ""


def _planned(now: GuideState) -> str:
    refused = [tp for tp, outcome in now.draft.outcomes.items() if not outcome.good]
    offline = {state.tp for state in now.view.troubled if state.offline}
    if now.view.health is not None and now.view.health.current and not now.draft.partitions & offline:
        verify = "V says" if now.pane in BY_NAME["verify"].panes else "Press 6, then V:"
        return (
            f"Guide: {'every partition' if len(now.draft.partitions) > 1 else 'the partition'} of the plan has a"
            f" leader by now, so nothing is left to apply. {verify} what is lost."
        )
    if refused and now.draft.partitions <= set(refused):
        here = "" if now.pane == PLAN else "Press 6: "
        return f"Guide: no row of the plan can be applied as it is. {here}NOW and NOTE say why."
    if now.pane != PLAN:
        return "Guide: the row is in the plan. Press 6 to review what it would lose."
    if not now.safety.armed:
        never = now.why_not("arm")
        if never:
            return f"Guide: {never}. The plan can be reviewed here, and applied elsewhere."
        return "Guide: e designates another leader, R shows the requests. Press A to arm the console."
    why = now.why_not("apply")
    return (
        f"Guide: {why}."
        if why
        else "Guide: press X to apply. You will be asked once more; Esc always leads back."
    )


def _choosing(now: GuideState) -> str:
    if now.pane == OFFLINE and not now.elects:
        return (
            "Guide: a partition has no leader. Do what Do first says. If that cannot be done, press Enter, then c"
            " there."
        )
    if now.pane == OFFLINE:
        return "Guide: a partition has no leader. Press Enter to see each replica's log, then c to choose."
    survey = None if now.cursor is None else now.view.surveys.get(now.cursor)
    if now.pane == REPLICAS and survey is not None and survey.state.offline:
        decision = _least_careful(now, survey)
        if decision.verdict is not DecisionKind.ELECT:
            return _nobody(now.view, survey, decision)
        if not now.why_not("choose"):
            return (
                "Guide: each replica's log is drawn above; Tab, then End, shows what each choice cuts off. Press c"
                " to choose."
            )
    return "Guide: press 1 for the offline partitions, and Enter there to see one."


def _least_careful(now: GuideState, survey: Survey) -> Decision:
    """What the key that chooses has to offer, however little is known."""
    return decide(survey, now.ranking, Strategy.AGGRESSIVE, now.view.verdicts.get(survey.tp))


def _nobody(view: View, survey: Survey, decision: Decision) -> str:
    others = view.offline - 1
    also = f", 1 for the other {counted(others, 'partition')}" if others else ""
    press = "Press 3 to see whose return would help"
    if decision.why_not is WhyNot.FAILED_DISK:
        press = "Press 5 for the disk that FAILED, and M there"
    return f"Guide: no replica of {survey.tp} can be elected now. {press}{also}."
