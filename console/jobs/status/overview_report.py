"""The whole cluster on one screen, or all of it as JSON (docs/output.md, ``ktriage.status/3``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backends.base.answers import LogDir
from console.jobs.quorum.quorum_report import BRIEF, key_json, strength_json
from console.output.json_document import document
from console.reading.broker_report import BROKER, BrokerHealth, BrokerRow, broker_rows
from console.reading.cluster_reading import ClusterReading, not_answered
from console.reading.copied_log_report import copied_log_lines
from console.reading.log_dirs_report import FAILED_LOG_DIR, LOG_DIR
from console.reading.partition_report import partition_lines, survey_json
from console.reading.survey_json import (
    cluster_json,
    contact_json,
    health_json,
    quorum_json,
    steps_json,
    unknown_json,
)
from console.reading.survey_report import (
    AS_LAST_KNOWN,
    answered_text,
    evidence_json,
    evidence_lines,
    without_answer,
    worst,
)
from recovery.broker_load import broker_loads
from recovery.cluster_health import no_answer
from recovery.membership.quorum_health import (
    MemberRole,
    MemberState,
    QuorumHealth,
    QuorumMember,
    non_voter_leads,
)
from recovery.model import Unknown
from recovery.plan.importance import NO_TIERS, Importance
from recovery.survey_columns import troubled
from recovery.wording.advice_text import steps_lines
from recovery.wording.cluster_health_text import health_lines, not_listed_text
from recovery.wording.offline_text import offline_text
from recovery.wording.quantity_text import brokers_are, counted, more, printable
from widgets.fields import ALL_SHOWN, Field, Row, json_row, text_rows

AT_MOST = 8
"""Rows of each kind other than partitions: few, so that the overview fits on one screen."""


def overview_counts(view: ClusterReading) -> dict[str, int]:
    """The counts by their names in JSON."""
    brokers, found, problems = view.cluster.brokers, view.totals, view.problems
    return {
        "brokers": len(brokers),
        "fenced": sum(1 for broker in brokers if broker.fenced),
        "unreachable": sum(
            1 for broker in brokers if no_answer(broker.id, problems, view.log_dirs) is not None
        ),
        "partitions": found.partitions,
        "offline": found.offline,
        "underMinIsr": found.under_min_isr,
        "underReplicated": found.under_replicated,
        "elrInUse": found.elr_in_use,
        "replicas": found.replicas,
        "answered": found.answered,
        "failedLogDirs": len(view.failed_dirs()),
        "logDirsNotListed": len(view.dirs_not_listed),
    }


def overview_lines(
    view: ClusterReading,
    limit: int,
    now: float,
    importance: Importance = NO_TIERS,
    *,
    resumes_first: bool = False,
) -> Iterator[str]:
    """What is wrong, then counts, then the worst of each kind; ``limit`` partitions at most (0: all in trouble).
    ``now`` in seconds since 1970. ``resumes_first``: an earlier run is to be finished before everything else.
    """
    advice = view.cluster_advice
    yield from health_lines(view.health, advised=advice.stops)
    if resumes_first and not advice.stops:
        yield "Do first: finish the run that was interrupted (ktriage resume). Start no broker before."
    # Without a quorum nobody can be elected.
    steps = () if advice.stops or not view.health.current else view.steps
    after = resumes_first and not advice.stops
    yield from steps_lines(steps, before=advice.first, then=() if after else advice.then, after=after)
    yield from count_lines(view)
    yield from offline_lines(view, now)
    yield from _titled("BROKERS IN TROUBLE", BROKER, _brokers_in_trouble(view))
    yield from _titled("QUORUM", BRIEF, _members_shown(view))
    failed = [(dir_.broker, dir_) for dir_ in view.failed_dirs()]
    yield from _titled("FAILED LOG DIRS", FAILED_LOG_DIR, failed)
    in_trouble = troubled(view.surveys)
    if in_trouble:
        yield ""
        shown = worst(in_trouble, limit or len(in_trouble), importance)
        yield from partition_lines(view, shown)
        yield from more(len(in_trouble) - len(shown), f" in trouble{ALL_SHOWN}", noun="partition")


def offline_lines(view: ClusterReading, now: float) -> Iterator[str]:
    """For how long partitions have been offline, in one line; none where no partition is."""
    times, offline = view.offline_times, view.totals.offline
    if not offline or view.partitions.led_before:
        return
    text = offline_text(times.since, times.already, offline, now)
    yield text or printable(f"offline for: not known ({times.problem})")


def count_lines(view: ClusterReading) -> Iterator[str]:
    """What the cluster is, and how many of what were found."""
    counts, cluster = overview_counts(view), view.cluster
    release = f", {cluster.release}" if cluster.release else ""
    found = f"cluster {cluster.cluster_id}{release}: {counted(counts['brokers'], 'broker')}"
    yield (
        f"{found}, none asked"
        if cluster.from_disks
        else f"{found}: {counts['fenced']:,} fenced, {counts['unreachable']:,} unreachable from here;"
        f" log dirs: {counts['failedLogDirs']:,} failed{not_listed_text(view.dirs_not_listed)}"
    )
    yield _quorum_line(view)
    hidden = len(view.partitions.hidden)
    limits = " that this caller may see" if view.partitions.visible_only or hidden else ""
    limits += f" ({counted(hidden, 'topic')} may not be seen: needs DESCRIBE)" if hidden else ""
    then = "" if view.health.current else AS_LAST_KNOWN
    yield (
        f"{counted(counts['partitions'], 'partition')}{limits}{then}: {counts['offline']:,} offline,"
        f" {view.totals.led_under_min_isr:,} more under min ISR,"
        f" {counts['underReplicated']:,} not fully replicated,"
        f" {_elr_count(view, counts['elrInUse'])}"
    )
    yield from _unrecorded(view)
    yield (f"{counted(counts['replicas'], 'replica')}: {answered_text(view)}, {without_answer(view.totals)}")
    yield from evidence_lines(view)
    yield from copied_log_lines(view.copied_log)


def _unrecorded(view: ClusterReading) -> Iterator[str]:
    """Brokers that do not answer when no controller is there to take them out of ISRs: no count shows them."""
    silent = view.silent_brokers
    states = [state for state in view.partitions.states if not silent.isdisjoint(state.isr)]
    if states:
        yield (
            f"{brokers_are(silent, 'not reached')} and still shown as the leader of {view.led_by_silent:,} of them"
            f" and in the ISR of {len(states):,}: without a controller nobody records it"
        )


def _elr_count(view: ClusterReading, in_use: int) -> str:
    offered = view.cluster.elr_enabled
    if isinstance(offered, Unknown):
        return f"ELR: {printable(str(offered))}"
    return f"{in_use:,} with ELR in use" if offered else "ELR is off"


def _quorum_line(view: ClusterReading) -> str:
    found = view.members_health
    if not isinstance(found, QuorumHealth):
        if view.lost is None:
            return f"quorum: {printable(str(found))}"
        return printable(f"quorum: {view.lost.sentence}.")  # what to do about it stands above
    silent, late = len(found.dead_voters), len(_voters_behind(found))
    quorum = found.quorum
    parts = [f"quorum: led by {quorum.leader.id} (epoch {quorum.leader_epoch}), {found.strength}"]
    if problem := non_voter_leads(quorum):
        parts.append(problem)
    if silent:
        parts.append(f"{counted(silent, 'voter')} {'does' if silent == 1 else 'do'} not fetch")
    if late:
        parts.append(f"{counted(late, 'voter')} {'is' if late == 1 else 'are'} behind")
    observers = [member for member in found.members if not _votes(member)]
    behind = sum(member.state is not MemberState.CAUGHT_UP for member in observers)
    return "; ".join((*parts, f"{counted(len(observers), 'observer')}: {behind} behind"))


def _votes(member: QuorumMember) -> bool:
    return member.role in (MemberRole.LEADER, MemberRole.VOTER)


def _voters_behind(found: QuorumHealth) -> list[QuorumMember]:
    return [member for member in found.behind if _votes(member)]


def _brokers_in_trouble(view: ClusterReading) -> list[BrokerRow]:
    fine = (BrokerHealth.OUT_OF_SYNC, BrokerHealth.UP)
    return [
        row
        for row in broker_rows(view, broker_loads(view.partitions.states), view.steps)
        if row.state not in fine
    ]


def _titled(title: str, fields: Sequence[Field[Row]], rows: Sequence[Row]) -> Iterator[str]:
    """The rows below a heading, cut off with a word on how many are left; nothing where there is none."""
    if rows:
        yield ""
        yield title
        yield from text_rows(fields, rows, "  ", limit=AT_MOST, rest=" (--output json shows all)")


def _members_shown(view: ClusterReading) -> list[QuorumMember]:
    """All voters, and the observers that do not keep up; who does not fetch first."""
    found = view.members_health
    if not isinstance(found, QuorumHealth):
        return []
    return [m for m in found.silent_first if _votes(m) or m.state is not MemberState.CAUGHT_UP]


def overview_document(view: ClusterReading) -> Iterator[str]:
    """``ktriage.status/3``."""
    return document(
        "status",
        {
            "cluster": cluster_json(view.cluster),
            "health": health_json(view.health),
            "steps": steps_json(view.steps),
            "disksToRead": [
                {
                    "topic": tp.topic,
                    "partition": tp.partition,
                    "brokers": list(one.brokers),
                    "leader": one.leader,
                    "elected": one.elected,
                    "electedAtMs": one.since_ms,
                    "unclean": one.unclean,
                }
                for tp, one in view.unread.partitions.items()
            ],
            "disksNotJudged": view.unread.not_judged,
            "counts": {
                **overview_counts(view),
                "hiddenTopics": len(view.partitions.hidden) if view.partitions.not_compared is None else None,
            },
            "offlineSince": [
                {"topic": tp.topic, "partition": tp.partition, "sinceMs": round(since * 1000)}
                for tp, since in view.offline_times.since.items()
            ],
            "unknown": list(not_answered(view)),
            "quorum": {**({} if view.quorum is None else quorum_json(view.quorum)), **_voters_json(view)},
            "visibleOnly": view.partitions.visible_only,
            "hiddenTopics": list(view.partitions.hidden),
            "contacts": list(map(contact_json, view.contacts)),
            "logDirs": [
                *(row for broker, dirs in view.log_dirs.items() for row in _dirs_json(broker, dirs)),
                *(row for one in view.failed_before for row in _dirs_json(one.broker, (one,))),
            ],
            **({} if view.evidence is None else {"evidence": evidence_json(view.evidence)}),
            "partitions": list(map(survey_json(view), view.surveys)),
        },
    )


def _voters_json(view: ClusterReading) -> dict[str, object]:
    """The same keys, with the same meaning, as in ``ktriage.quorum-status/1``."""
    found = view.members_health
    if not isinstance(found, QuorumHealth):
        return {}
    return {
        "strength": strength_json(found.strength),
        "notFetching": [key_json(member.key) for member in found.dead_voters],
        "behind": [key_json(member.key) for member in _voters_behind(found)],
    }


def _dirs_json(broker: int, dirs: Sequence[LogDir] | Unknown) -> Iterator[dict[str, object]]:
    """One object a log dir; the size of each replica is given with its log."""
    if isinstance(dirs, Unknown):
        yield {"broker": broker, **unknown_json(dirs)}
        return
    for dir_ in dirs:
        yield {
            **json_row(LOG_DIR, (broker, dir_)),
            "replicas": len(dir_.replicas),
            "size": sum(max(0, replica.size) for replica in dir_.replicas),
            "moving": sum(1 for replica in dir_.replicas if replica.future),
        }
