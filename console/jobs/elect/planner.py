"""The plan from the keyboard: choose, edit, save, load, compare, verify."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from console.app.base.copy_and_export import given_path
from console.app.base.key_desk import KeyDesk
from console.app.base.question_dialogs import AnswerOption, ChoiceQuestion, TextQuestion
from console.app.base.screen_calls import Handlers
from console.app.session.view import Choosing
from console.change.registry import PLAN, REPLICAS
from console.errors import NotDone
from console.jobs.consumers.election_aftermath import ElectionAftermath
from console.jobs.elect import draft_changes
from console.jobs.elect import leader_choice_screen as leader_choice
from console.jobs.elect.applier import verified_now
from console.jobs.elect.candidate_picker import CandidatePicker
from console.jobs.elect.candidate_report import in_plan
from console.jobs.elect.leader_choice_screen import StrategyOutcome
from console.jobs.elect.plan_pane import PlanPane
from console.jobs.elect.sources import load
from console.new_files import write_new
from console.paths import unused
from console.reading.plan_comparison import ask_afresh, prepare
from recovery.acknowledged.verdict import VerdictKind
from recovery.model import NO_LEADER, Survey, TopicPartition
from recovery.plan.edit import ranked
from recovery.plan.make import make_plan
from recovery.plan.plan_review import acknowledged_loss, candidate_harm, summarise
from recovery.plan.values import BarePlan, Header, Plan, PlanCandidate, PlanRow
from recovery.plan.write import to_json
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from recovery.wording.advice_text import short_reason
from recovery.wording.cluster_health_text import leader_unknown_text
from recovery.wording.loss_text import brief_range, short_loss
from recovery.wording.quantity_text import both, counted
from recovery.wording.verdict_text import short_verdict
from widgets.text import Tone


class Planner:
    """What the plan's keys do."""

    def __init__(self, desk: KeyDesk, aftermath: Callable[[ElectionAftermath], None]) -> None:
        """``aftermath`` is told what the clients need, when a plan is verified."""
        self._desk = desk
        self._aftermath = aftermath
        self._requests = False

    def handlers(self) -> Handlers:
        begin = self._desk.tasks.begin
        return {
            "choose": lambda: begin("choosing", self._choose(self._partitions())),
            "edit": lambda: self.edit(None),
            "drop": self._drop,
            "write": lambda: begin("saving the plan", self._write()),
            "load": lambda: begin("loading a plan", self._load()),
            "compare": lambda: begin("comparing", self._compare(), asks=False),
            "verify": lambda: begin("verifying", self._verify(), asks=False),
            "requests": self._toggle_requests,
            "ranking": lambda: begin("ranking", self._ranking()),
            "strategy": lambda: begin("strategy", self._strategy()),
        }

    def _partitions(self) -> tuple[TopicPartition, ...]:
        """The marked rows, or the one under the cursor."""
        navigation, table = self._desk.navigation, self._desk.table()
        if navigation.pane == REPLICAS:
            return () if navigation.cursor is None else (navigation.cursor,)
        marked = sorted(key for key in table.marks if isinstance(key, TopicPartition))
        key = table.cursor_key
        return tuple(marked) or ((key,) if isinstance(key, TopicPartition) else ())

    # Choosing

    async def _choose(self, partitions: Sequence[TopicPartition]) -> None:
        view = self._desk.session.view
        found = [view.surveys[tp] for tp in partitions if tp in view.surveys]
        surveys = [survey for survey in found if survey.state.offline]
        if not surveys:
            elsewhere = {} if view.partitions is None else view.partitions.unreachable_leaders
            unknown = [f"{tp}: {leader_unknown_text(elsewhere[tp])}" for tp in partitions if tp in elsewhere]
            why = next(iter(unknown), "") or _why_nothing(found) or "put the cursor on a partition"
            raise NotDone(f"nothing to choose: {why}")
        if len(surveys) == 1:
            await self._choose_one(surveys[0])
        else:
            await self._choose_many(surveys)

    async def choose_first(self, partitions: Sequence[TopicPartition]) -> None:
        """As the key c for these partitions, and opens the plan if they are in it then."""
        before = self._desk.session.draft.plan
        await self._choose(partitions)
        if self._desk.session.draft.plan is not before:
            self._desk.navigation.go(PLAN)

    async def _choose_one(self, survey: Survey) -> None:
        session, how = self._desk.session, self._desk.session.choosing
        reported = await session.run(
            lambda backend: leader_choice.judged_one(backend, session.view, survey, session.copy)
        )
        decision = decide(survey, how.ranking, how.strategy, reported)
        if decision.verdict is DecisionKind.ELECT:
            await self._add([survey], how)
            return
        anyone = decide(survey, how.ranking, Strategy.AGGRESSIVE, reported)
        if anyone.verdict is not DecisionKind.ELECT:
            nobody = (
                "" if anyone.reason == decision.reason else f"; nobody can be elected now: {anyone.reason}"
            )
            raise NotDone(f"{survey.tp}: {decision.verdict}: {decision.reason}{nobody}")
        made = make_plan(session.header(), [(survey, anyone)], session.view.topic_marks)
        balanced = decide(survey, how.ranking, Strategy.BALANCED, reported)
        question = f"Keep which log of {survey.tp}? {_sentence(short_reason(decision))}"
        answers = log_options(
            made.rows[0], how.ranking, balanced.instead, planned=survey.tp in session.draft.partitions
        )
        answer = await self._desk.ask(ChoiceQuestion(question, answers))
        if answer == ACCEPT:
            await self._accept_unchecked([survey], how)
        elif answer == COMPARE:
            picker = CandidatePicker(made.rows[0], how.ranking, native=session.view.native_elections)
            if (broker := await self._desk.ask(picker)) is not None:
                await self._by_hand(survey, broker)
        elif answer == WAIT:
            self._desk.say(f"{survey.tp} {self._left(survey.tp)}: {short_reason(decision)}", Tone.INFO)
        elif answer is None:
            self._desk.say("", Tone.INFO)
        else:
            await self._by_hand(survey, int(answer))

    def _left(self, tp: TopicPartition) -> str:
        """Takes its row out of the plan, if it is elected there, and returns what was done with it."""
        draft = self._desk.session.draft
        if tp in draft.partitions:
            self._desk.tasks.plan_is(draft_changes.without(draft, [tp], self._header_of_plan()))
            return "is left as it is, and was taken out of the plan"
        if draft.plan is not None and any(row.tp == tp for row in draft.plan.not_elected):
            return "is left as it is, and the plan elects nobody for it"
        return "is left as it is, and is not in the plan"

    async def _by_hand(self, survey: Survey, broker: int) -> None:
        session, view = self._desk.session, self._desk.session.view
        header = self._header_of_plan()
        self._desk.tasks.asks_no_more()
        plan, decision = await session.run(
            lambda backend: leader_choice.choose_by_hand(
                backend, view, survey, broker, header, copy=session.copy
            )
        )
        if decision.verdict is not DecisionKind.ELECT:
            raise NotDone(f"{survey.tp}: {broker} cannot be chosen: {decision.reason}")
        self._desk.tasks.plan_is(draft_changes.with_choices(session.draft, plan, [survey.tp]))
        self._desk.say(*chosen_text(plan))

    def _header_of_plan(self) -> Header:
        """For a change by hand: what the other rows were chosen by stays as it is."""
        plan, header = self._desk.session.draft.plan, self._desk.session.header()
        if plan is None:
            return header
        return replace(header, ranking=plan.header.ranking, strategy=plan.header.strategy)

    async def _choose_many(self, surveys: Sequence[Survey]) -> None:
        how = self._desk.session.choosing
        outcomes = await self._outcomes(surveys)
        mine = next((one for one in outcomes if one.strategy is how.strategy), None)
        if mine is None or mine.elects < len(surveys):
            answers = [AnswerOption(str(one.strategy), strategy_text(one)) for one in outcomes]
            if more := await asyncio.to_thread(self._unchecked, surveys, how):
                answers.append(_accept_option(f"elect {counted(more, 'more partition')}"))
            question = f"{len(surveys):,} partitions: elect by which strategy?"
            answer = await self._desk.ask(ChoiceQuestion(question, answers))
            if answer == ACCEPT:
                await self._accept_unchecked(surveys, how)
            if answer in (None, ACCEPT):
                return
            how = replace(how, strategy=Strategy(answer))
        await self._add(surveys, how)

    def _unchecked(self, surveys: Sequence[Survey], how: Choosing) -> int:
        """Of how many partitions balanced elects somebody only by what was not checked."""
        verdicts = self._desk.session.view.verdicts
        return sum(
            decide(survey, how.ranking, Strategy.BALANCED, verdicts.get(survey.tp)).instead != NO_LEADER
            for survey in surveys
        )

    async def _accept_unchecked(self, surveys: Sequence[Survey], how: Choosing) -> None:
        """As ``plan --accept-unchecked --reason``: the plan and the journal keep the reason."""
        question = "Why is what was not checked taken to hold? The plan and the journal keep it:"
        reason = await self._desk.ask(TextQuestion(question))
        if reason:
            await self._add(surveys, replace(how, strategy=Strategy.BALANCED), accepted=reason)

    async def _add(self, surveys: Sequence[Survey], how: Choosing, *, accepted: str = "") -> None:
        session, view = self._desk.session, self._desk.session.view
        header = replace(session.header(), strategy=how.strategy, ranking=how.ranking, accepted=accepted)
        partitions = [survey.tp for survey in surveys]
        self._desk.tasks.asks_no_more()
        progress = self._desk.progress.begin("choosing")
        plan = await session.run(
            lambda backend: leader_choice.choose_for(
                backend,
                view,
                partitions,
                header,
                importance=how.importance,
                copy=session.copy,
                progress=progress,
            )
        )
        self._desk.tasks.plan_is(draft_changes.with_choices(session.draft, plan))
        self._desk.say(*chosen_text(plan))

    # The plan itself

    def edit(self, tp: TopicPartition | None) -> None:
        """Another leader for that row, or for the one under the cursor."""
        key = tp if tp is not None else self._desk.table().cursor_key
        if isinstance(key, TopicPartition):
            self._desk.tasks.begin("editing", self._edit(key))

    async def _edit(self, tp: TopicPartition) -> None:
        session = self._desk.session
        row = session.draft.row(tp)
        if row is None:
            raise NotDone(f"{tp}: nobody is elected for it; choose a candidate in pane 1 or 2")
        assert session.draft.plan is not None
        ranking = session.draft.plan.header.ranking
        stands = in_plan(edited=tp in session.draft.edited)
        broker = await self._desk.ask(
            CandidatePicker(row, ranking, stands, native=session.view.native_elections)
        )
        if broker is None or broker == row.leader:
            return
        if session.draft.row(tp) is not row:
            raise NotDone(f"{tp}: the plan is another one by now; nothing was changed")
        self._desk.tasks.plan_is(draft_changes.led_by(session.draft, tp, broker, self._header_of_plan()))
        self._desk.say(f"{tp}: {broker} is designated by hand", Tone.GOOD)

    def _drop(self) -> None:
        gone = self._partitions()
        self._desk.tasks.plan_is(
            draft_changes.without(self._desk.session.draft, gone, self._header_of_plan())
        )
        self._desk.table().clear_marks()
        self._desk.say(f"taken out of the plan: {counted(len(gone), 'row')}")

    async def _write(self) -> None:
        plan = self._desk.session.draft.plan
        assert plan is not None
        question = "Save the plan to a new file (a file that exists is never overwritten):"
        answer = await self._desk.ask(TextQuestion(question, unused()))
        if answer is None:
            return
        path = given_path(answer)
        await asyncio.to_thread(write_new, path, to_json(plan))
        if self._desk.session.draft.plan is plan:
            self._desk.tasks.plan_is(replace(self._desk.session.draft, file=path))
        self._desk.say(f"the plan is in {path}", Tone.GOOD)

    async def _load(self) -> None:
        question = "Load a plan file, or the newest plan of a pipeline's results (a directory or a URI):"
        answer = await self._desk.ask(TextQuestion(question))
        if answer is None:
            return
        session = self._desk.session
        cluster_id = session.view.cluster_id
        self._desk.tasks.asks_no_more()
        self._desk.say(f"reading {answer}; Esc gives it up")
        plan, path = await load(answer, cluster_id)
        self._desk.say("")
        if isinstance(plan, BarePlan):
            self._desk.tasks.plan_is(draft_changes.loaded(await self._afresh(plan, path), None))
        else:
            self._desk.tasks.plan_is(draft_changes.loaded(plan, path))
        self._desk.navigation.go(PLAN)
        await self._compare()

    async def _afresh(self, bare: BarePlan, file: Path | None) -> Plan:
        session, cluster = self._desk.session, self._desk.session.view.cluster
        if cluster is None:
            raise NotDone("the cluster has not answered yet")
        header = session.header()
        return await session.run(lambda b: ask_afresh(b, cluster, bare, header, seconds=10.0, file=file))

    async def _compare(self) -> None:
        session, plan = self._desk.session, self._desk.session.draft.plan
        assert plan is not None
        cluster_id = session.view.cluster_id
        progress = self._desk.progress.begin("comparing")
        prepared = await session.run(lambda b: prepare(b, plan, cluster_id, progress))
        self._desk.tasks.plan_is(draft_changes.compared(session.draft, prepared.checks))
        counts = ", ".join(f"{count:,} {now}" for now, count in prepared.counts.items())
        self._desk.say(f"beside the cluster of now: {counts}", Tone.WARN if prepared.refused else Tone.GOOD)

    async def _verify(self) -> None:
        plan = self._desk.session.draft.plan
        assert plan is not None
        verified = await verified_now(
            self._desk.session, plan, self._desk.progress.begin("verifying"), as_consumer=True
        )
        self._desk.tasks.plan_is(draft_changes.verified(self._desk.session.draft, verified))
        self._aftermath(verified.aftermath)
        self._desk.say(verified.in_short, Tone.GOOD if verified.well else Tone.WARN)

    def _toggle_requests(self) -> None:
        self._requests = not self._requests
        pane = self._desk.pane_of(PLAN)
        assert isinstance(pane, PlanPane)
        pane.show_requests(self._requests)

    # How leaders are chosen

    async def _ranking(self) -> None:
        answers = [
            AnswerOption(Ranking.LAST_RECORD, "last-record: the epoch of the last record, then the log end"),
            AnswerOption(
                Ranking.SPECIFICATION, "specification: the partition's leader epoch, then the log end"
            ),
        ]
        answer = await self._desk.ask(ChoiceQuestion("What makes a log the best?", answers))
        self._desk.tasks.asks_no_more()
        if answer is not None:
            await self._desk.session.choose_by(replace(self._desk.session.choosing, ranking=Ranking(answer)))

    async def _outcomes(self, surveys: Sequence[Survey]) -> tuple[StrategyOutcome, ...]:
        view, ranking = self._desk.session.view, self._desk.session.choosing.ranking
        return await asyncio.to_thread(leader_choice.strategy_outcomes, surveys, ranking, view.verdicts)

    async def _strategy(self) -> None:
        view = self._desk.session.view
        if view.at is None:
            raise NotDone("the cluster was not read yet")
        offline = [survey for survey in view.surveys.values() if survey.state.offline]
        outcomes = await self._outcomes(offline)
        answers = [AnswerOption(str(one.strategy), strategy_text(one)) for one in outcomes]
        question = f"Elect by which strategy? Now: {counted(len(offline), 'offline partition')}."
        answer = await self._desk.ask(ChoiceQuestion(question, answers))
        self._desk.tasks.asks_no_more()
        if answer is not None:
            await self._desk.session.choose_by(
                replace(self._desk.session.choosing, strategy=Strategy(answer))
            )


def _accept_option(elects: str) -> AnswerOption:
    return AnswerOption(ACCEPT, f"{elects} although not all was checked: asks you for the reason")


WAIT, COMPARE, ACCEPT = "wait", "compare", "accept"
"""Answers beside those that name a broker by its id."""
_STRATEGIES = {
    Strategy.BALANCED: "balanced, by all that is known",
    Strategy.COMPLETE: "complete, with every log known",
    Strategy.AGGRESSIVE: "aggressive, the best that answered",
}


def log_options(row: PlanRow, ranking: Ranking, instead: int, *, planned: bool) -> list[AnswerOption]:
    """Waiting, which is what Enter does; then each log that can be kept, the best first, with what it loses.
    ``instead``: whom --accept-unchecked elects, so that a reason is asked for; -1: nobody. ``planned``: the plan
    elects a leader for it, and waiting takes that row out.
    """
    electable = [one for one in ranked(row, ranking) if one.electable]
    logs = (
        AnswerOption(ACCEPT, f"{one.broker} loses {_loses(one)}; asks you for the reason")
        if one.broker == instead
        else AnswerOption(str(one.broker), f"{one.broker} loses {_loses(one)}")
        for one in electable
    )
    return [
        AnswerOption(WAIT, "wait: leave it as it is" + (", and take it out of the plan" if planned else "")),
        *logs,
        AnswerOption(COMPARE, "compare the logs in full, then choose"),
    ]


def _loses(candidate: PlanCandidate) -> str:
    verdict = candidate.verdict
    harm = short_loss(candidate.loss, candidate.last_epoch).replace("unknown", "an unknown number")
    if verdict is None or (verdict.kind is VerdictKind.OPEN and verdict.at_most is None):
        return harm
    lost = short_verdict(verdict) if verdict.kind is VerdictKind.OPEN else acknowledged_loss((verdict,))
    return f"{harm}; acknowledged records: {lost}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def chosen_text(plan: Plan) -> tuple[str, Tone]:
    """What was put into the plan, for the status line: the verdicts are counted as in every head of a plan."""
    acknowledged = summarise(plan).acknowledged
    if len(plan.rows) == 1 and not plan.not_elected:
        row = plan.rows[0]
        text = f"{row.tp}: elect {row.leader}; loses {candidate_harm(row.chosen)}"
    else:
        left = f"; not elected: {len(plan.not_elected):,}" if plan.not_elected else ""
        text = f"in the plan: {counted(len(plan.rows), 'partition')}{left}"
        if judged := str(acknowledged):
            text += f"; acknowledged records lost: {judged}"
    proved = acknowledged.is_none(len(plan.rows)) or not str(acknowledged)
    lossless = proved and all(row.lossless for row in plan.rows)
    return f"{text}. 6 opens the plan", Tone.GOOD if lossless else Tone.WARN


def strategy_text(found: StrategyOutcome) -> str:
    """A strategy in a line or two: whom it elects, who waits for whom, and what is lost."""
    parts = [f"elects {found.elects:,}"]
    for decision, count in found.decisions.items():
        if decision is DecisionKind.WAIT:
            parts.append(_waiting(count, found.waits_for))
        elif decision is not DecisionKind.ELECT:
            first, *others = found.reasons.get(decision, ("",))
            more = f", or {counted(len(others), 'other reason')}" if others else ""
            parts.append(f"{count:,} {decision}" + (f": {first}{more}" if first else ""))
    lines = [f"{_STRATEGIES[found.strategy]}: {'; '.join(parts)}"]
    if found.elects:
        acknowledged = str(found.acknowledged) or "nobody judged"
        lost = brief_range(found.at_least, found.at_most)
        lines.append(f"loses offsets: {lost}; acknowledged records: {acknowledged}")
    return "\n    ".join(lines)


def _waiting(count: int, waits_for: Mapping[int, int]) -> str:
    """``1 waits for broker 2``, ``8 wait, all for broker 2``, ``8 wait: 5 for broker 2, 3 for broker 4``."""
    if count == 1:
        brokers = "broker" if len(waits_for) == 1 else "brokers"
        return f"1 waits for {brokers} {both(sorted(waits_for))}" if waits_for else "1 waits"
    if len(waits_for) == 1 and count in waits_for.values():
        return f"{count:,} wait, all for broker {next(iter(waits_for))}"
    brokers = ", ".join(f"{some:,} for broker {broker}" for broker, some in sorted(waits_for.items()))
    return f"{count:,} wait: {brokers}" if brokers else f"{count:,} wait"


def _why_nothing(found: Sequence[Survey]) -> str:
    if not found:
        return "their logs are unknown: not asked yet"
    leader = found[0].state.leader
    return f"{found[0].tp} is led by {leader}" if len(found) == 1 else "they all have leaders"
