"""One refresh of the cluster: what is in trouble, and what the screen shows. Requests are sent one after the
other, so that no broker has two of ours in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from backends.base.answers import PICTURE_WAIT, Contact, Depth, LogDir, SurveyRequest
from backends.base.errors import BackendError, NoLeader
from backends.base.failed_disks import FailedDisks
from backends.base.judged_partitions import PartitionJudge
from backends.base.membership import Membership
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend, Progress
from backends.live.errors import as_unknown
from backends.metadata_log.copied_log import CopiedMetadataLog
from console.app.session.view import JudgedDisks, JudgedSurvey, LogRead, View, ViewRequest
from console.last_healthy import recall
from console.output.screen import no_progress
from console.reading.cluster_reading import ClusterReading, Configs, old_if_equal, topics_of, worst_contacts
from console.reading.disk_evidence import registration_facts
from console.reading.log_dir_survey import failed_before
from console.reading.offline_times import OfflineTimesReader
from console.reading.quorum_state import lost
from console.reading.read_cluster import may_be_under_min_isr, refuse_copy_of_another, with_unread_disks
from console.reading.remembered_voters import (
    MEMORY,
    ask_every_controller,
    remembered_quorum,
    with_rebuild,
    with_replaced,
)
from console.reading.unread_disks import brokers_up, open_disks
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.advice import first_steps, read_first
from recovery.cluster_health import short_of_replicas
from recovery.cut_off_logs import cut_off_logs, remembered, tells_what_was_cut_off
from recovery.disk_evidence import DiskReading, with_disks
from recovery.membership.after_rebuild import AfterRebuild, away_brokers, partitions_written
from recovery.membership.lost_quorum import EPOCH_MARGIN
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import health
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import PartitionState, Survey, TopicPartition, Unknown, Why
from recovery.unread_disks import (
    before_start,
)

T = TypeVar("T")

SURVEY_SECONDS = 5.0
"""Seconds that a refresh waits for a broker that hangs."""
SELDOM_SECONDS = 60.0
"""Seconds until topic configurations, and disks that are not shown, are read again: they seldom change."""

Tell = Callable[[View], None]
Election = tuple[TopicPartition, int]
"""A partition, and its leader epoch before it was elected."""


@dataclass(frozen=True, slots=True)
class ClusterRefresh:
    """Refreshes the view of one cluster: each step puts a part into its reading, as
    :meth:`ClusterReading.with_parts` does. ``clock`` returns seconds; ``tell`` gets the first view while it fills.

    ``offline_times`` reads the time since when each partition is offline. ``evidence`` are disks whose logs stand
    for those of silent replicas, as long as nothing speaks against it. ``copy`` is a copied metadata log, for when
    the active controller's cannot be read. ``elected_here``: the elections that were agreed to in this console, as
    of now. ``progress`` is told what is being read, and how far that is.
    """

    clock: Callable[[], float]
    tell: Tell
    offline_times: OfflineTimesReader = field(default_factory=lambda: OfflineTimesReader(MetadataLogSource()))
    survey_seconds: float = SURVEY_SECONDS
    evidence: tuple[DiskReading, ...] = ()
    copy: CopiedMetadataLog | None = None
    elected_here: Callable[[], Collection[Election]] = frozenset
    progress: Progress = no_progress

    async def read_all(self, backend: Backend, before: View, request: ViewRequest, generation: int) -> View:
        """The whole view. Raises BackendError if nothing could be asked, and InputError if the copied metadata log
        is another cluster's; a part that could not be read is Unknown in it.
        """
        if before.cluster is None and backend.virtual_time is not None:
            backend.virtual_time.watch_opening(self.progress)
        self.progress("asking who is in the cluster", 0, 0)
        cluster = await (backend.open() if before.cluster is None else backend.cluster())
        if before.cluster is not None and before.cluster.cluster_id != cluster.cluster_id:
            before = View()
        view = replace(before, generation=generation, opened=old_if_equal(before.cluster, cluster))
        steps = (
            ("listing partitions", self._partitions),
            ("asking replicas", self._logs),
            ("comparing logs", self._cut_off),
            ("asking what brokers offer", self._capabilities),
            ("asking the quorum", self._quorum),
            ("reading log dirs", self._dirs),
            ("reading the metadata log", self._offline_times),
            ("asking controllers", self._after_rebuild),
            ("reading the metadata log", self._fenced_times),
            ("judging partitions", self._verdicts),
            ("reading the journal", self._unread_disks),
        )
        for what, step in steps:
            self.progress(what, 0, 0)
            self._fill(before, view)
            view = await step(backend, view, request)
        self.progress("asking for reassignments", 0, 0)
        moving = await _value(backend.reassignments())
        return replace(_with(view, reassignments=moving), at=self.clock())

    async def read_logs(self, backend: Backend, before: View, request: ViewRequest, generation: int) -> View:
        """Reads only the logs that the screen shows, after the cursor has moved."""
        states = _states_of(before, request.shown)
        surveys, contacts = await self._ask_logs(backend, states, request.deep)
        now = self.clock()
        if before.reading is None:
            return before
        view = replace(
            before,
            reading=before.reading.with_logs(surveys, contacts),
            generation=generation,
            surveyed={**before.surveyed, **{survey.tp: now for survey in surveys}},
            answered={**before.answered, **_answered(contacts, now)},
        )
        # The verdicts at once: without them a row would suggest to wait until the next refresh. The log is read
        # after the survey, so that it shows each restart of a broker that answered.
        source = self.offline_times.source
        if source.unread is None:
            await source.read(backend)
        return await self._verdicts(backend, view, request)

    def _fill(self, before: View, view: View) -> None:
        """The first view is shown while it fills. Later the last complete view stays until the next one is
        complete.
        """
        if before.at is None:
            self.tell(view)

    async def _partitions(self, backend: Backend, view: View, _wanted: ViewRequest) -> View:
        found = await backend.partitions()
        short = list(short_of_replicas(found.states))
        assert view.opened is not None
        if view.reading is None:
            view = replace(view, reading=ClusterReading(view.opened, found))
        else:
            view = _with(view, cluster=view.opened, partitions=found)
        # The other partitions cannot be under min ISR, so their topics' configurations are not needed.
        view, configs = await self._configs(backend, view, topics_of(short))
        troubled = tuple(s for s in short if s.offline or may_be_under_min_isr(s, configs))
        now = self.clock()
        since = {state.tp: view.since.get(state.tp, now) for state in troubled}
        return replace(
            view,
            troubled=old_if_equal(view.troubled, troubled),
            first=now if view.first is None else view.first,
            since=old_if_equal(view.since, since),
        )

    async def _offline_times(self, backend: Backend, view: View, _wanted: ViewRequest) -> View:
        assert view.reading is not None
        if view.at is None:
            refuse_copy_of_another(view.reading, self.copy)
        now = self.clock()
        short = () if view.partitions is None else short_of_replicas(view.partitions.states)
        times = await self.offline_times.read(backend, short, now)
        history, copied = self.offline_times.source.or_copy(self.copy)
        if copied:
            offline = (state for state in view.troubled if state.offline)
            copy = self.offline_times.from_history(backend, history, offline, now)
            times = times._replace(since={**copy, **times.since})
        return _with(view, offline_times=times)

    async def _after_rebuild(self, backend: Backend, view: View, _wanted: ViewRequest) -> View:
        """The metadata log is read, and the controllers are asked one by one, only where the quorum can be a
        rebuilt one: its epochs are above the margin.
        """
        membership: Membership | None = getattr(backend, "membership", None)
        quorum, before = view.quorum, view.after_rebuild
        rebuilt = isinstance(quorum, Quorum) and quorum.leader_epoch > EPOCH_MARGIN
        if membership is None or view.partitions is None or not isinstance(quorum, Quorum) or not rebuilt:
            return replace(_alone(view), after_rebuild=None)
        now, asked_at = self.clock(), view.controllers_at
        due = not _recent(asked_at, now)
        if before is None and due:
            await self.offline_times.source.read(backend)
        history, _copied = self.offline_times.source.or_copy(self.copy)
        log = None if isinstance(history, Unknown) else history.rebuilt
        if isinstance(history, Unknown) or log is None:
            return replace(_alone(view), after_rebuild=None, controllers_at=now if due else asked_at)
        quorum = replace(quorum, rebuilt_epoch=log.epoch)
        written = before.partitions if before is not None and before.log == log else None
        asked = None if before is None else before.asked
        if before is None or due:
            answers, asked_at = await _value(ask_every_controller(membership, view.cluster_id, log)), now
            asked = None if isinstance(answers, Unknown) else answers
        found = AfterRebuild(
            log,
            partitions_written(history, log) if written is None else written,
            {},
            health(quorum, LivenessLimits(), {m.key.id for m in quorum.progress} - set(view.brokers)),
            away=away_brokers(view.brokers.values(), view.partitions.states),
            offline=view.offline,
            unsurveyed=sum(s.offline and s.tp not in view.surveyed for s in view.troubled),
            asked=asked,
        )
        wanted = {TopicPartition(one.topic, one.partition) for one in found.partitions}
        states = {state.tp: state for state in view.partitions.states if state.tp in wanted}
        earlier = with_replaced(quorum, log, None if view.reading is None else view.reading.earlier)
        shown = _with(view, quorum=quorum, earlier=earlier, second_quorum=found.second_quorum)
        return replace(shown, after_rebuild=replace(found, states=states), controllers_at=asked_at)

    async def _fenced_times(self, backend: Backend, view: View, _wanted: ViewRequest) -> View:
        now, before = self.clock(), view.fenced_since
        fenced = [broker.id for broker in view.brokers.values() if broker.fenced]
        reported = self.offline_times.fenced_since(backend, fenced, now)
        since = {b: (reported[b], True) if b in reported else before.get(b, (now, False)) for b in fenced}
        return replace(view, fenced_since=old_if_equal(before, since))

    async def _verdicts(self, backend: Backend, view: View, _wanted: ViewRequest) -> View:
        """What each choice loses of the acknowledged records; a survey that was judged is not judged again."""
        elr = Unknown(Why.NOT_ANSWERED, "not told") if view.cluster is None else view.cluster.elr_enabled
        history, copied = self.offline_times.source.or_copy(self.copy)
        judge = PartitionJudge(elr, history, backend.file_answers(), copied=copied)
        log = LogRead.of(history, copied)
        assert view.reading is not None
        configs, known = view.reading.configs, view.verdicts
        disks = FailedDisks(view.reading.log_dirs, view.reading.failed_before, history)
        judged: dict[TopicPartition, JudgedSurvey] = {}
        verdicts: dict[TopicPartition, PartitionVerdicts] = {}
        offline = [state for state in view.troubled if state.offline]
        for number, state in enumerate(offline):
            survey, old = view.surveys.get(state.tp), view.judged.get(state.tp)
            if number % 200 == 0:
                self.progress("judging partitions", number, len(offline))
                await asyncio.sleep(0)
            if survey is None:
                continue
            failed = disks.under(survey)
            if old is not None and old.survey is survey and (old.log, old.failed) == (log, failed):
                judged[state.tp], verdicts[state.tp] = old, known[state.tp]
                continue
            config = configs.get(state.topic, Unknown(Why.NOT_ANSWERED, "not told"))
            reported = judge.verdicts(survey, config, failed)
            # The same object keeps the same row.
            verdicts[state.tp] = old_if_equal(known.get(state.tp), reported)
            judged[state.tp] = JudgedSurvey(survey, log, failed)
        # By identity: a row takes only the verdicts of its very survey (:func:`console.app.session.rows.shaped`).
        before = view.judged
        same = len(judged) == len(before) and all(before.get(tp) is one for tp, one in judged.items())
        return view if same else replace(_with(view, verdicts=verdicts), judged=judged)

    async def _unread_disks(self, _backend: Backend, view: View, _wanted: ViewRequest) -> View:
        """Judged again only where something changed that they follow from."""
        reading, before = view.reading, view.disks_judged
        assert reading is not None
        read_before = None if before is None else before.journal
        journal = await asyncio.to_thread(open_disks, view.cluster_id, read_before)
        judged_by = self.offline_times.source.or_copy(self.copy)
        log = LogRead.of(*judged_by)
        follows_from = JudgedDisks(reading.cluster, reading.partitions, reading.configs, log, journal)
        if before == follows_from:
            return view
        reading = await with_unread_disks(reading, judged_by, journal, reading.min_isr)
        up = brokers_up(reading.cluster)
        steps = first_steps(read_first(reading.unread, before_start(reading.disks), up))
        return replace(view, reading=reading.with_parts(steps=steps), disks_judged=follows_from)

    async def _configs(self, backend: Backend, view: View, topics: tuple[str, ...]) -> tuple[View, Configs]:
        assert view.reading is not None
        known, now = view.reading.configs, self.clock()
        if not _recent(view.configs_at, now):
            known, view = {}, replace(view, configs_at=now)
        missing = tuple(topic for topic in topics if isinstance(known.get(topic), Unknown | None))
        if missing:
            asked = await _value(backend.topic_configs(missing))
            configs: Configs = dict.fromkeys(missing, asked) if isinstance(asked, Unknown) else asked
            view = _with(view, configs={**known, **configs})
        assert view.reading is not None
        return view, view.reading.configs

    async def _logs(self, backend: Backend, view: View, request: ViewRequest) -> View:
        troubled = {state.tp for state in view.troubled}
        # Whoever leads again may lack what was read while nobody led.
        others = request.shown.union(view.leaderless) - troubled
        states = (*view.troubled, *_states_of(view, others))
        surveys, contacts = await self._ask_logs(backend, states, request.deep)
        now = self.clock()
        assert view.reading is not None
        return replace(
            view,
            reading=view.reading.with_logs(surveys, contacts, anew=True),
            surveyed={survey.tp: now for survey in surveys},
            answered={**view.answered, **_answered(contacts, now)},
        )

    async def _cut_off(self, _backend: Backend, view: View, _wanted: ViewRequest) -> View:
        """What partitions lost that were led again without this console. The logs stay until their leader's is
        known.
        """
        leaderless, cut_off = dict(view.leaderless), dict(view.cut_off)
        for tp, survey in view.surveys.items():
            if survey.state.offline:
                leaderless[tp] = remembered(leaderless.get(tp), survey)
            elif tp in leaderless and tells_what_was_cut_off(survey):
                reported = cut_off_logs(leaderless.pop(tp), survey)
                if reported is not None:
                    cut_off[tp] = reported
        ours = self.elected_here()
        others = tuple(one for one in cut_off.values() if (one.tp, one.epoch) not in ours)
        return replace(
            _with(view, cut_off=others),
            leaderless=old_if_equal(view.leaderless, leaderless),
            cut_off=old_if_equal(view.cut_off, cut_off),
        )

    async def _ask_logs(
        self, backend: Backend, states: Iterable[PartitionState], deep: TopicPartition | None
    ) -> tuple[tuple[Survey, ...], tuple[Contact, ...]]:
        surveys: list[Survey] = []
        contacts: list[Contact] = []
        wide = tuple(state for state in states if state.tp != deep)
        bottom = tuple(state for state in states if state.tp == deep)
        for asked, depth, dirs in ((wide, Depth.DIVERGENCE, False), (bottom, Depth.FULL, True)):
            if asked:
                request = SurveyRequest(
                    asked, self.survey_seconds, depth, log_dirs=dirs, picture_wait=PICTURE_WAIT
                )
                result = await backend.survey(request, self.progress)
                surveys.extend(result.surveys)
                contacts.extend(result.contacts)
        return self._with_disks(surveys), worst_contacts(contacts)

    def _with_disks(self, surveys: Sequence[Survey]) -> tuple[Survey, ...]:
        """Without the metadata log it is not known whether a broker came back since: no disk counts then."""
        history = self.offline_times.source.history
        if not self.evidence or isinstance(history, Unknown):
            return tuple(surveys)
        return with_disks(surveys, self.evidence, registration_facts(history, self.evidence))[0]

    async def _capabilities(self, backend: Backend, view: View, _wanted: ViewRequest) -> View:
        if view.capabilities is not None and not isinstance(view.capabilities, Unknown):
            return view
        return replace(view, capabilities=await _value(backend.capabilities()))

    async def _quorum(self, backend: Backend, view: View, _wanted: ViewRequest) -> View:
        """With kraft.version, which the quorum that a command reads beside the partitions does not have."""
        membership: Membership | None = getattr(backend, "membership", None)
        if membership is None:
            return _with(view, quorum=Unknown(Why.NOT_OFFERED, "the metadata quorum"), lost=None)
        found = await _value(_quorum_or_lost(membership, view.cluster_id))
        if isinstance(found, QuorumWithoutLeader):
            return _with(view, quorum=None, lost=found, earlier=None)
        if isinstance(found, Unknown):
            return _with(view, quorum=found, lost=None, earlier=None)
        log = None if view.after_rebuild is None else view.after_rebuild.log
        earlier = remembered_quorum(view.cluster_id)
        return _with(view, quorum=with_rebuild(found, log, earlier), lost=None, earlier=earlier)

    async def _dirs(self, backend: Backend, view: View, request: ViewRequest) -> View:
        if not request.log_dirs and _recent(view.dirs_at, self.clock()):
            return view
        asked = await _value(backend.log_dirs())
        found = dict.fromkeys(view.brokers, asked) if isinstance(asked, Unknown) else asked
        now = self.clock()
        reported = {broker: now for broker, dirs in found.items() if not isinstance(dirs, Unknown)}
        before: tuple[LogDir, ...] = ()
        if view.cluster is not None and view.partitions is not None:
            before = await asyncio.to_thread(failed_before, view.cluster, view.partitions, found)
        return replace(
            _with(view, log_dirs=found, failed_before=before),
            dirs_at=now,
            answered={**view.answered, **reported},
        )


async def _quorum_or_lost(membership: Membership, cluster_id: str) -> Quorum | QuorumWithoutLeader:
    try:
        return await membership.describe()
    except NoLeader:
        return await lost(membership, cluster_id, recall(cluster_id, MEMORY))


async def _value(asking: Awaitable[T]) -> T | Unknown:
    """The answer, or why there is none: a part that cannot be read does not remove the others."""
    try:
        return await asking
    except BackendError as error:
        return as_unknown(error)


def _answered(contacts: Iterable[Contact], now: float) -> dict[int, float]:
    return {contact.broker: now for contact in contacts if contact.problem is None}


def _with(view: View, **parts: Any) -> View:
    """The view with those parts of its reading."""
    assert view.reading is not None, "the partitions are read first"
    reading = view.reading.with_parts(**parts)
    return view if reading is view.reading else replace(view, reading=reading)


def _alone(view: View) -> View:
    """Of a quorum that was not rebuilt, as far as is known: nobody leads beside it."""
    return view if view.reading is None else _with(view, second_quorum=())


def _recent(at: float | None, now: float) -> bool:
    return at is not None and now - at < SELDOM_SECONDS


def _states_of(view: View, partitions: Collection[TopicPartition]) -> tuple[PartitionState, ...]:
    if not partitions or view.partitions is None:
        return ()
    return tuple(state for state in view.partitions.states if state.tp in partitions)
