"""Verdicts in a plan file (docs/files.md): the candidate's key ``acknowledged``."""

from __future__ import annotations

import json
from functools import lru_cache

from recovery.acknowledged.verdict import (
    Condition,
    ConditionKind,
    Decider,
    DeciderKind,
    Evidence,
    EvidenceKind,
    Verdict,
    VerdictValue,
)
from recovery.plan.json_fields import (
    FieldError,
    Object,
    as_object,
    brokers,
    choice,
    integer,
    objects,
    optional_integer,
    spans,
)

_CACHED_TEXTS = 10_000
"""Texts that are cached: where nothing is lost, the verdicts of thousands of partitions are equal."""


def verdict_json(verdict: Verdict) -> dict[str, object]:
    """The members of the object; what is empty is left out."""
    found: dict[str, object] = {
        "verdict": verdict.value,
        "atLeast": verdict.at_least,
        "atMost": verdict.at_most,
    }
    if verdict.committed:
        found["committed"] = verdict.committed
    if verdict.uncertain:
        found["uncertain"] = verdict.uncertain
    if verdict.appended:
        found["appended"] = verdict.appended
    if verdict.expired:
        found["expired"] = verdict.expired
    if verdict.since_ms:
        found["sinceMs"] = verdict.since_ms
    if verdict.evidence:
        found["evidence"] = [_evidence(one) for one in verdict.evidence]
    if verdict.conditions:
        found["conditions"] = [_condition(one) for one in verdict.conditions]
    if verdict.decided_by:
        found["decidedBy"] = [
            {"kind": one.kind, "brokers": one.brokers, "every": one.every} for one in verdict.decided_by
        ]
    return found


@lru_cache(_CACHED_TEXTS)
def verdict_as_text(verdict: Verdict) -> str:
    """As JSON text."""
    return _encode(verdict_json(verdict))


_encode = json.JSONEncoder(check_circular=False).encode  # thousands of small objects


def _evidence(one: Evidence) -> dict[str, object]:
    found: dict[str, object] = {"kind": one.kind, "brokers": one.brokers}
    if one.offset >= 0:
        found["offset"] = one.offset
    if one.since_ms is not None:
        found["sinceMs"] = one.since_ms
    if one.until_ms is not None:
        found["untilMs"] = one.until_ms
    if one.acks_all:
        found["acksAll"] = True
    return found


def _condition(one: Condition) -> dict[str, object]:
    found: dict[str, object] = {"kind": one.kind, "brokers": one.brokers}
    if one.tolerated:
        found["tolerated"] = one.tolerated
    if one.since_ms is not None:
        found["sinceMs"] = one.since_ms
    if one.doubtful:
        found["doubtful"] = True
    return found


def read_verdict(value: object) -> Verdict:
    """The verdict in an object that :func:`verdict_json` wrote. An earlier release wrote ``none`` whatever its
    conditions. Raises FieldError.
    """
    try:
        fields = as_object(value)
        return Verdict(
            choice(fields, "verdict", VerdictValue).kind,
            integer(fields, "atLeast"),
            optional_integer(fields, "atMost"),
            spans(fields, "committed") if "committed" in fields else (),
            spans(fields, "uncertain") if "uncertain" in fields else (),
            integer(fields, "appended") if "appended" in fields else 0,
            integer(fields, "expired") if "expired" in fields else 0,
            integer(fields, "sinceMs") if "sinceMs" in fields else None,
            objects(fields, "evidence", _read_evidence) if "evidence" in fields else (),
            objects(fields, "conditions", _read_condition) if "conditions" in fields else (),
            objects(fields, "decidedBy", _read_decider) if "decidedBy" in fields else (),
        )
    except FieldError as wrong:
        raise wrong.under(".acknowledged") from None


def _read_evidence(fields: Object) -> Evidence:
    return Evidence(
        choice(fields, "kind", EvidenceKind),
        brokers(fields, "brokers"),
        integer(fields, "offset") if "offset" in fields else -1,
        integer(fields, "sinceMs") if "sinceMs" in fields else None,
        integer(fields, "untilMs") if "untilMs" in fields else None,
        fields.get("acksAll") is True,
    )


def _read_condition(fields: Object) -> Condition:
    return Condition(
        choice(fields, "kind", ConditionKind),
        brokers(fields, "brokers"),
        integer(fields, "tolerated") if "tolerated" in fields else 0,
        integer(fields, "sinceMs") if "sinceMs" in fields else None,
        fields.get("doubtful") is True,
    )


def _read_decider(fields: Object) -> Decider:
    return Decider(
        choice(fields, "kind", DeciderKind), brokers(fields, "brokers"), fields.get("every") is True
    )
