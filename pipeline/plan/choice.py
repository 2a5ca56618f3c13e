"""The choice of a leader in SQL: :mod:`recovery.ranking` and :mod:`recovery.strategy`, step by step.

Each step is a list of columns over those before it. The words are those of :mod:`recovery.strategy`, so that a
decision reads the same wherever it was made.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.plan.losses import lost, nothing_lost, uniform
from pipeline.plan.sql import NO_BROKERS, fresh, names, text
from recovery.model import Standing, Why
from recovery.ranking import Ranking
from recovery.strategy import REASSIGNING, Strategy, Verdict

Column = tuple[str, str]
"""A name and its expression."""

ELECTABLE = Standing.ELECTABLE.value
_OTHER = {Ranking.LAST_RECORD: Ranking.SPECIFICATION, Ranking.SPECIFICATION: Ranking.LAST_RECORD}
_EPOCH = {Ranking.LAST_RECORD: "last_epoch", Ranking.SPECIFICATION: "leader_epoch"}


def answered(replica: str, ranking: Ranking) -> str:
    """:func:`recovery.ranking.answered`."""
    if ranking is Ranking.SPECIFICATION:
        return f"{replica}.unknown IS NULL"
    lineage = (
        f"{replica}.lineage_unknown IS NULL OR {replica}.lineage_unknown.why <> {text(Why.NOT_ANSWERED)}"
    )
    return f"{replica}.unknown IS NULL AND ({lineage})"


def ranked(ranking: Ranking) -> str:
    """(negative epoch, negative log end, place in the assignment) of all that answered, best first."""
    r, i = fresh("r"), fresh("i")
    key = (
        f"CASE WHEN {answered(r, ranking)} THEN named_struct('epoch', -{r}.{_EPOCH[ranking]},"
        f" 'log_end', -{r}.log_end, 'at', {i}, 'electable', {r}.standing = {text(ELECTABLE)},"
        f" 'broker', {r}.broker) END"
    )
    return f"array_sort(array_compact(transform(replicas, ({r}, {i}) -> {key})))"


def refused(ranking: Ranking) -> str:
    """Why last-record refuses the partition, null where it does not (:func:`recovery.ranking.rank`)."""
    if ranking is Ranking.SPECIFICATION:
        return "cast(NULL AS string)"
    r = fresh("r")
    named = f"get(filter(replicas, {r} -> {r}.lineage_unknown IS NOT NULL AND {answered(r, ranking)}), 0)"
    return (
        f"CASE WHEN exists(replicas, {r} -> {r}.lineage_unknown IS NOT NULL) THEN"
        f" transform(array({named}), {r} -> concat({r}.lineage_unknown.why,"
        f" ': the last record\\'s epoch on broker ', {r}.broker, ' (', {r}.lineage_unknown.detail,"
        " '); last-record needs it, and length alone can destroy acknowledged records'))[0] END"
    )


def first_steps(ranking: Ranking) -> list[list[Column]]:
    """Who ranks how, by the ranking and by the other one."""
    k = fresh("k")
    other = _OTHER[ranking]
    return [
        [("ranked", ranked(ranking)), ("refused", refused(ranking)), ("other_refused", refused(other))],
        [
            ("best", f"get(filter(ranked, {k} -> {k}.electable), 0)"),
            (
                "other_best",
                f"CASE WHEN other_refused IS NULL THEN get(filter({ranked(other)},"
                f" {k} -> {k}.electable), 0).broker END",
            ),
            ("brokers", f"transform(ranked, {k} -> {k}.broker)"),
        ],
    ]


def waiting(ranking: Ranking, strategy: Strategy) -> Column:
    """(whom to wait for, why), null where nobody is waited for (:func:`recovery.strategy._must_wait`)."""
    if strategy in (Strategy.AGGRESSIVE, Strategy.NONE):
        return "waiting", "cast(NULL AS struct<brokers: array<int>, why: string>)"
    r, b = fresh("r"), fresh("b")
    electable = f"{r}.standing = {text(ELECTABLE)} AND {answered(r, ranking)}"
    ready = f"exists(replicas, {r} -> {r}.broker = {b} AND {electable})"
    missing = f"transform(filter(replicas, {r} -> NOT ({answered(r, ranking)})), {r} -> {r}.broker)"
    silent = _wait(missing, lambda m: f"concat('replica ', {names(m)}, ' did not answer')", _fenced_better())
    if strategy is Strategy.COMPLETE:
        return "waiting", silent
    clean = f"filter(assignment, {b} -> array_contains(isr, {b}) OR array_contains(elr, {b}))"
    unready = _wait(
        f"filter(last_known_elr, {b} -> NOT {ready})",
        lambda m: f"concat('LastKnownELR member ', {names(m)}, ' is not electable or did not answer')",
        _fenced_better(),
    )
    after = f"CASE WHEN size(last_known_elr) > 0 THEN {unready} ELSE {silent} END"
    returning = _wait(
        clean,
        lambda m: (
            f"concat('the return of ', {names(m, ' or ')},"
            " ' (ISR or ELR) after a clean shutdown elects without loss')"
        ),
        after,
    )
    return "waiting", f"CASE WHEN elr IS NULL THEN {silent} ELSE {returning} END"


def _wait(brokers: str, why: Callable[[str], str], otherwise: str) -> str:
    m = fresh("m")
    told = why(m)
    return (
        f"transform(array({brokers}), {m} -> CASE WHEN size({m}) > 0"
        f" THEN named_struct('brokers', {m}, 'why', {told}) ELSE {otherwise} END)[0]"
    )


def _fenced_better() -> str:
    """:func:`recovery.strategy._better_but_fenced`."""
    k, m = fresh("k"), fresh("m")
    better = f"{k}.epoch < best.epoch OR ({k}.epoch = best.epoch AND {k}.log_end < best.log_end)"
    fenced = f"transform(filter(ranked, {k} -> NOT {k}.electable AND ({better})), {k} -> {k}.broker)"
    why = (
        f"concat({names(m)}, ' answered with a better log than ', best.broker, ', but cannot be elected yet')"
    )
    return (
        f"CASE WHEN best IS NOT NULL THEN transform(array({fenced}), {m} -> CASE WHEN size({m}) > 0"
        f" THEN named_struct('brokers', {m}, 'why', {why}) END)[0] END"
    )


def decision(ranking: Ranking, strategy: Strategy) -> list[list[Column]]:
    """Verdict, leader, order, reason, and whom the other ranking chooses (:func:`recovery.strategy.decide`)."""
    report = "WHEN true THEN" if strategy is Strategy.NONE else "WHEN false THEN"
    verdict = (
        f"CASE WHEN leader <> -1 THEN {text(Verdict.ALREADY_ONLINE)}"
        f" WHEN reassigning_unknown IS NOT NULL OR reassigning THEN {text(Verdict.REFUSED)}"
        f" {report} {text(Verdict.REPORT_ONLY)} WHEN refused IS NOT NULL THEN {text(Verdict.REFUSED)}"
        f" WHEN waiting IS NOT NULL THEN {text(Verdict.WAIT)}"
        f" WHEN best IS NULL THEN {text(Verdict.NO_CANDIDATE)} ELSE {text(Verdict.ELECT)} END"
    )
    b = fresh("b")
    others = f"filter(brokers, {b} -> {b} <> best.broker)"
    unheard = f"filter(assignment, {b} -> {b} <> best.broker AND NOT array_contains(brokers, {b}))"
    elected = f"verdict = {text(Verdict.ELECT)}"
    return [
        [waiting(ranking, strategy)],
        [("verdict", verdict)],
        [
            ("chosen", f"CASE WHEN {elected} THEN best.broker WHEN leader <> -1 THEN leader ELSE -1 END"),
            (
                "election_order",
                f"CASE WHEN {elected} THEN concat(array(best.broker), {others}, {unheard}) ELSE {NO_BROKERS} END",
            ),
            (
                "waits_for",
                f"CASE verdict WHEN {text(Verdict.WAIT)} THEN waiting.brokers"
                f" WHEN {text(Verdict.NO_CANDIDATE)} THEN assignment ELSE {NO_BROKERS} END",
            ),
            ("reason", _reason(ranking)),
            (
                "other_ranking_leader",
                f"CASE WHEN {elected} AND other_best <> best.broker THEN other_best END",
            ),
        ],
    ]


def _reason(ranking: Ranking) -> str:
    what = "last record's epoch" if ranking is Ranking.LAST_RECORD else "leader epoch"
    k = fresh("k")
    standing = (
        f"CASE replicas[{k}.at].standing WHEN {text(Standing.FENCED)} THEN 'fenced'"
        f" WHEN {text(Standing.OFFLINE_REPLICA)} THEN 'offline for the controller' ELSE 'not registered' END"
    )
    nobody = (
        "CASE WHEN size(ranked) = 0 THEN 'no replica answered' ELSE concat("
        "'no replica that answered can be elected: ', array_join(transform(ranked,"
        f" {k} -> concat({k}.broker, ' is ', {standing})), ', ')) END"
    )
    why = (
        "concat(reassigning_unknown.why, CASE WHEN reassigning_unknown.detail <> ''"
        " THEN concat(': ', reassigning_unknown.detail) ELSE '' END)"
    )
    busy = (
        "CASE WHEN reassigning_unknown IS NOT NULL THEN"
        f" concat('whether a reassignment is in progress is not known (', {why}, ')')"
        f" ELSE {text(REASSIGNING)} END"
    )
    return (
        f"CASE verdict WHEN {text(Verdict.ALREADY_ONLINE)} THEN concat('led by ', leader)"
        f" WHEN {text(Verdict.REFUSED)} THEN CASE WHEN reassigning_unknown IS NOT NULL OR reassigning"
        f" THEN {busy} ELSE refused END"
        f" WHEN {text(Verdict.REPORT_ONLY)} THEN 'strategy none: nothing is elected'"
        f" WHEN {text(Verdict.WAIT)} THEN waiting.why WHEN {text(Verdict.NO_CANDIDATE)} THEN {nobody}"
        f" ELSE concat('best of ', size(ranked), ' of ', size(replicas), ' that answered: ', {text(what)}, ' ',"
        " -best.epoch, ', log end ', -best.log_end) END"
    )


def candidates() -> list[list[Column]]:
    """Every candidate, best first, with its fence and its loss; and who did not answer."""
    k, c, r = fresh("k"), fresh("c"), fresh("r")

    def told(loss: str) -> str:
        fields = (
            "broker",
            "standing",
            "leader_epoch",
            "last_epoch",
            "log_end",
            "log_start",
            "high_watermark",
        )
        copied = ", ".join(f"'{name}', {c}.{name}" for name in fields)
        one = f"named_struct({copied}, 'loss', {loss})"
        return f"transform(ranked, {k} -> transform(array(replicas[{k}.at]), {c} -> {one})[0])"

    return [
        [("uniform", uniform("replicas"))],
        [
            (
                "candidates",
                "CASE WHEN leader <> -1 OR refused IS NOT NULL THEN NULL"
                f" WHEN uniform THEN {told(nothing_lost('replicas', c))} ELSE {told(lost('replicas', c))} END",
            ),
            (
                "silent",
                f"transform(filter(replicas, {r} -> NOT array_contains(brokers, {r}.broker)),"
                f" {r} -> named_struct('broker', {r}.broker, 'standing', {r}.standing))",
            ),
        ],
    ]
