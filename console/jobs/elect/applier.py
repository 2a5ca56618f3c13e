"""Changes the cluster from the console: arm, check, ask, apply, report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from backends.base.answers import Outcome
from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from console.app.base.confirmed_change import (
    ConfirmedTargets,
    asked_on_screen,
    freeze,
    refuse_changed,
)
from console.app.base.key_desk import KeyDesk
from console.app.base.screen_calls import Handlers
from console.app.session.arm_switch import switch_arming
from console.app.session.session import Session
from console.change.change import Conclusion
from console.change.loss_consent import LOST, NAMED, RISK, SAVED, election_outline, loss_question
from console.change.registry import BY_NAME
from console.errors import InputError, NotDone
from console.jobs.elect import draft_changes
from console.jobs.elect.plan_text import ACKS_REFUSED
from console.plan_files import save_plan
from console.reading.plan_comparison import PreparedPlan, checked_just_now, prepare
from recovery.model import TopicPartition
from recovery.plan.election_requests import requests_in_short
from recovery.plan.values import Plan
from recovery.plan.verify import RowState
from recovery.unread_brokers import UnreadBrokers, failed_disks, without_disks
from recovery.wording.advice_text import starts_instead
from recovery.wording.quantity_text import and_more, both, counted
from widgets.dialogs.confirmation import ConfirmAnswer, ConfirmOption, ConfirmPart, ConfirmRequest
from widgets.text import Tone

if TYPE_CHECKING:
    from console.jobs.consumers.election_aftermath import ElectionAftermath
    from console.jobs.elect.apply_plan import Applied, ApplyPlan
    from console.jobs.elect.election_batches import Result
    from console.jobs.elect.verify_plan import Verified
    from console.jobs.rescue.rescue_outlook import RescueChoice, RescueOutlook
    from console.rescue_files.rescued_branch import RescueContents

VERIFY_SECONDS = 10.0
"""How long the partitions, groups and transactions may take to be read, each."""


class RescueOption(NamedTuple):
    """``choice`` is None where nothing is read. ``keep``: logs that nobody read are kept from being cut off."""

    option: ConfirmOption
    choice: RescueChoice | None
    keep: bool = False


def rescue_options(outlook: RescueOutlook | None, unread: UnreadBrokers) -> tuple[RescueOption, ...]:
    """The choices for a plan; empty where its elections cut off nothing, neither now nor when a broker starts.
    ``unread`` are brokers that are down. To read nothing first comes last.
    """
    from console.jobs.rescue.rescue_outlook import RescueChoice  # noqa: PLC0415  # not for the first frame

    silent = sorted({broker for brokers in unread.values() for broker in brokers})
    if outlook is None:
        if not silent:
            return ()
        first = "Nothing is read first: no broker that answers holds more."
        return (
            RescueOption(ConfirmOption("keep no log", first), RescueChoice()),
            _keep_option(silent, "", RescueChoice()),
        )
    directory = outlook.request.directory
    where = f"…/{directory.parent.name}/{directory.name}"
    return (
        RescueOption(
            ConfirmOption(
                "rescue first",
                f"Read first: {counted(outlook.offsets, 'offset')}, {outlook.cost}. Into {where}.",
            ),
            RescueChoice(directory),
        ),
        *(
            [_keep_option(silent, f" Read first: the rest, into {where}.", RescueChoice(directory))]
            if silent
            else []
        ),
        RescueOption(
            ConfirmOption(
                "rescue what can be read",
                f"Read first, into {where}; elected even if that cannot be read as a whole.",
                Tone.WARN,
            ),
            RescueChoice(directory, elect_anyway=True),
        ),
        RescueOption(
            ConfirmOption("no rescue", "NOTHING is read first: what is cut off is gone for good.", Tone.BAD),
            None,
        ),
    )


def _keep_option(silent: Sequence[int], rescue: str, choice: RescueChoice) -> RescueOption:
    """Keeps the logs of the ``silent`` brokers, which are down; ``rescue`` says what is read first."""
    brokers = both(silent)
    return RescueOption(
        ConfirmOption(
            f"keep the log of {brokers}",
            f"The log of {brokers} stays, if down until then: taken out of the replica sets where enough copies"
            f" remain, a full copy later.{rescue}",
        ),
        choice,
        keep=True,
    )


_BEFORE_ASKING = "reading once more before asking"


class Applier:
    """Arms the console, and applies the plan after a confirmation. ``aftermath`` is told what the clients need."""

    def __init__(self, desk: KeyDesk, aftermath: Callable[[ElectionAftermath], None]) -> None:
        self._desk = desk
        self._aftermath = aftermath

    def handlers(self) -> Handlers:
        return {"arm": self._arm, "apply": lambda: self._desk.tasks.begin(_BEFORE_ASKING, self._apply())}

    def _arm(self) -> None:
        self._desk.say(*switch_arming(self._desk.session))

    async def _apply(self) -> None:
        session, plan = self._desk.session, self._desk.session.draft.plan
        assert plan is not None
        # A message about an earlier question must not be shown behind this one.
        self._desk.say("")
        prepared, outlook = await self._checked(plan)
        if not prepared.holding.rows:
            session.plan_is(draft_changes.refused(session.draft, prepared.checks))
            raise NotDone("no row of the plan is left to apply: see each row; nothing was sent")
        shown = replace(prepared.holding, not_elected=())
        frozen = freeze(shown, session.view.cluster_id, session.target.title, simulated=session.simulated)
        whole = freeze(plan, frozen.cluster_id, frozen.title, simulated=frozen.simulated)
        failed = failed_disks(prepared.holding.rows, prepared.unread)
        rescue = rescue_options(outlook, without_disks(prepared.unread, failed))
        prepared = replace(prepared, instead=self._start_instead(shown))
        asked = replace(request(frozen, prepared), options=tuple(one.option for one in rescue))
        from console.jobs.elect.apply_plan import ApplyPlan  # noqa: PLC0415  # not for the first frame

        agreed_to: set[tuple[TopicPartition, int]] = set()

        def agreed(answer: ConfirmAnswer) -> ApplyPlan:
            """Exactly the plan that was confirmed: every row is judged again right before its election."""
            refuse_changed(whole, session.draft.plan, session.view.cluster_id, session.safety)
            self._desk.tasks.busy = "applying the plan"
            self._save(whole.plan)
            agreed_to.update((row.tp, row.leader_epoch) for row in frozen.plan.rows)
            session.elected_here.update(agreed_to)
            chosen = rescue[answer.option] if rescue else None
            return ApplyPlan(
                frozen.plan,
                answer.reason,
                frozen.title,
                session.draft.file,
                rescue=None if chosen is None else chosen.choice,
                keep_logs_of=frozenset() if chosen is not None and chosen.keep else None,
                keep_where_possible=True,
                compared=replace(
                    checked_just_now(frozen.plan), cut_off=prepared.cut_off, unread=prepared.unread
                ),
            )

        sent = await self._desk.change(asked, agreed, frozen.cluster_id, "electing")
        if sent is None:
            return
        applied = sent.result
        session.elected_here -= agreed_to - _elected(applied)
        session.plan_is(
            draft_changes.applied(session.draft, (*prepared.refused, *applied.prepared.checks), applied)
        )
        saved, elected = draft_changes.rescue_of(frozen.plan, applied.rescued), applied.elected
        if saved is not None and elected is not None and any(one.succeeded for one in elected.results):
            session.left_to_do = session.left_to_do.with_saved(saved)
        verified = await self._verified(frozen.plan) if applied.elected is not None else None
        session.poller.ask()
        self._tell(applied, sent.conclusion, verified)
        if sent.unrecorded:
            self._desk.say(sent.unrecorded[0], Tone.BAD)

    def _start_instead(self, plan: Plan) -> tuple[str, ...]:
        """Whom to start in place of these elections, as pane 1 advises."""
        rows = self._desk.session.rows
        made = ((row.tp, rows.made_of[row.tp][1].advice) for row in plan.rows if row.tp in rows.made_of)
        advised = ((tp, advice) for tp, advice in made if advice is not None)
        return starts_instead(advised, rows.counts.steps)

    async def _checked(self, plan: Plan) -> tuple[PreparedPlan, RescueOutlook | None]:
        """The comparison, and what a rescue of what can be read takes. Raises InputError if it has no room."""
        from console.jobs.rescue.rescue_outlook import (  # noqa: PLC0415  # not for the first frame
            DEFAULT_RESCUE,
            rescue_outlook,
        )

        session = self._desk.session
        cluster_id, progress = session.view.cluster_id, self._desk.progress.begin("comparing every row")

        async def job(backend: Backend) -> tuple[PreparedPlan, RescueOutlook | None]:
            found = await prepare(backend, plan, cluster_id, progress)
            return found, await rescue_outlook(
                backend, found.holding, found.cut_off, DEFAULT_RESCUE, progress
            )

        prepared, outlook = await session.run(job)
        session.plan_is(draft_changes.compared(session.draft, prepared.checks))
        return prepared, outlook

    def _save(self, plan: Plan) -> None:
        """Saves the plan before it is applied: resume and verify need the file."""
        session = self._desk.session
        if session.draft.file is None:
            session.plan_is(replace(session.draft, file=save_plan(plan)))

    async def _verified(self, plan: Plan) -> Verified | None:
        """What is known once leaders are elected; None where it could not be read."""
        session = self._desk.session
        try:
            verified = await verified_now(session, plan, self._desk.progress.begin("verifying"))
        except (BackendError, InputError):  # also a rescue that is damaged: V says which
            session.left_to_do = replace(session.left_to_do, clients=NOT_VERIFIED)
            return None
        finally:
            self._desk.progress.end()
        session.plan_is(draft_changes.verified(session.draft, verified))
        self._aftermath(verified.aftermath)
        return verified

    def _tell(self, applied: Applied, conclusion: Conclusion, verified: Verified | None) -> None:
        """An elected leader alone is no recovery: clients may need something, and writes may be refused."""
        failures = applied.failures
        counts: Mapping[Outcome, int] = {} if applied.elected is None else applied.elected.counts
        done = () if applied.elected is None else [r for r in applied.elected.results if r.succeeded]
        under = [r.state for r in done if r.state is not None and r.state.usable is False]
        # A partition with a leader may not be writable yet: an election alone brings no replica back.
        need_you = NOT_VERIFIED if verified is None else verified.aftermath.need_you
        clients = f"{need_you}: V" if need_you else ""
        elected = f"{len(done):,} {'elected' if under or clients else 'recovered'}"
        if applied.rescued is not None:
            elected = f"{applied.rescued.offsets:,} offsets rescued, {elected}"
        preserved = () if applied.preserved is None else applied.preserved.brokers
        if preserved:
            elected += f", the log of {both(preserved)} is kept when it starts"
        online = sum(1 for result in done if result.election.outcome is Outcome.ALREADY_ONLINE)
        if online and online < len(done):
            elected += f" ({online:,} online already)"
        left = counts.get(Outcome.NOT_ATTEMPTED, 0)
        if applied.consumer is not None and applied.consumer.contradictions:
            self._desk.say(applied.consumer.in_short, Tone.BAD)
        elif left and left == len(failures):
            self._desk.say(f"stopped: {elected}, {left:,} not sent. X continues with them", Tone.WARN)
        elif failures:
            tp, why, leads = failures[0]
            not_done = f"{len(failures):,} not{' finished' if leads else ''}"
            self._desk.say(f"{elected}, {not_done}: {tp}: {why}{and_more(len(failures))}", Tone.BAD)
        elif online == len(done):
            online_already = "nothing was left to elect: what was planned is online already"
            self._desk.say(_joined(online_already, clients), Tone.WARN if clients else Tone.GOOD)
        else:
            tone = Tone.WARN if under or clients else Tone.GOOD
            refused = _refusing(under) if under else ""
            sentences = (_lead(done), refused, *_saved(applied, conclusion), clients or NOBODY)
            self._desk.say(". ".join(filter(None, sentences)), tone)


def _elected(applied: Applied) -> set[tuple[TopicPartition, int]]:
    """The elections that were requested, by partition and leader epoch before; what became of a request that was
    not answered is not known, and it may have elected.
    """
    results = () if applied.elected is None else applied.elected.results
    nothing = (Outcome.ALREADY_ONLINE, Outcome.NOT_ATTEMPTED, Outcome.STALE)
    return {(r.row.tp, r.row.leader_epoch) for r in results if r.election.outcome not in nothing}


NOT_VERIFIED = "Groups and transactions could not be read"
NOBODY = "No group and no transaction needs you. J: the journal"


def _lead(done: Sequence[Result]) -> str:
    """Who leads now."""
    if len(done) == 1:
        (result,) = done
        return f"Broker {result.election.leader} leads {result.row.tp}"
    online = sum(1 for result in done if result.election.outcome is Outcome.ALREADY_ONLINE)
    before = f", {online:,} of them online before" if online else ""
    return f"{counted(len(done), 'partition')} have a leader{before}"


def _saved(applied: Applied, conclusion: Conclusion) -> Iterator[str]:
    """What was saved of the records that were cut off, and the key that goes on."""
    key = _key_of(conclusion.next)
    if applied.rescued is not None:
        back = f": {key.split(' ')[0]} writes back" if conclusion.next[0] == "restore" else ""
        yield f"{counted(applied.rescued.offsets, 'offset')} saved{back}"
    if applied.preserved is not None and applied.preserved.brokers:
        yield f"The log of {both(applied.preserved.brokers)} is kept when it starts"
    if conclusion.next[0] not in {"restore", "verify"}:
        yield f"Next: {key}"


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _key_of(command: Sequence[str]) -> str:
    """How to run a command from here: its key, or the command line if it has none."""
    action = BY_NAME[command[0]]
    return f"{action.shown} ({action.label})" if action.key else f"ktriage {' '.join(command)}"


def _refusing(under: Sequence[RowState]) -> str:
    """For partitions that have a leader but are not writable: one in full, and the number of all."""
    first = under[0]
    of = "" if len(under) == 1 else f" for {len(under):,} of them, as {first.tp}"
    return f"{ACKS_REFUSED}{of} ({'; '.join(first.missing)})"


def request(frozen: ConfirmedTargets, prepared: PreparedPlan) -> ConfirmRequest:
    """The question: who is elected, what that loses, what could still go wrong, and what has to be typed. What is
    saved first are its options.
    """
    rows, said = frozen.plan.rows, election_outline(prepared)
    question = loss_question(prepared, frozen.title)
    where = "SIMULATOR" if frozen.simulated else "LIVE"
    target = [
        f"{where} {frozen.title}, cluster {frozen.cluster_id}",
        requests_in_short(frozen.plan, native=prepared.native),
    ]
    if len(rows) > 1:
        named = () if said.lost else rows[:NAMED]
        target += (f"{row.tp}: elect {row.leader}" for row in named)
        target.append("Pane 6 lists each partition.")
    parts = (
        ConfirmPart(LOST, said.proved, reassures=True),
        ConfirmPart(LOST, said.lost),
        ConfirmPart(RISK, said.risks),
    )
    asked = asked_on_screen(
        question, f"{said.elects}?", tuple(target), label="Apply", opened_by="X", option_label=SAVED
    )
    asked = replace(asked, parts=tuple(part for part in parts if part.lines))
    # If nothing may be lost, the button alone confirms.
    return asked if question.needs_reason else replace(asked, expected=None, needs_reason=False)


async def rescue_of_plan(backend: Backend, plan: Plan) -> RescueContents | None:
    """What was rescued for the plan, None where nothing was. Raises InputError where it is damaged."""
    cluster = await backend.cluster()
    return await asyncio.to_thread(_rescue_of, cluster.cluster_id, plan)


def _rescue_of(cluster_id: str, plan: Plan) -> RescueContents | None:
    from console.jobs.rescue.rescue_first import recorded_rescue  # noqa: PLC0415  # not for the first frame
    from console.rescue_files.rescued_branch import rescue_of  # noqa: PLC0415  # not for the first frame

    return rescue_of(recorded_rescue(cluster_id, plan.header.plan_id), plan)


async def verified_now(
    session: Session, plan: Plan, progress: Progress, *, as_consumer: bool = False
) -> Verified:
    """What ``ktriage verify`` says of the plan now, with what was rescued for it: only that has the markers of
    transactions which an election cut off. Raises BackendError, and InputError for a damaged rescue.
    """
    from console.jobs.elect.verify_plan import read_verified  # noqa: PLC0415  # not for the first frame

    async def job(backend: Backend) -> Verified:
        cluster = await backend.cluster()
        rescue = await rescue_of_plan(backend, plan)
        return await read_verified(
            backend,
            plan,
            cluster,
            seconds=VERIFY_SECONDS,
            progress=progress,
            rescue=rescue,
            as_consumer=as_consumer,
        )

    return await session.run(job)
