"""What has changed since a plan was made and does its row no harm: see :mod:`recovery.plan.judgement`."""

from __future__ import annotations

from recovery.model import Survey
from recovery.plan.values import PlanRow


def notes(row: PlanRow, now: Survey) -> tuple[str, ...]:
    """What has changed without harm, of a row that can be sent, and is worth a line."""
    found = []
    for candidate in row.candidates:
        log = now.log(candidate.broker)
        if log is None:
            found.append(f"broker {candidate.broker} does not answer now")
        elif candidate.broker == row.leader and log.log_start_offset > candidate.log_start >= 0:
            rise = f"rose from {candidate.log_start:,} to {log.log_start_offset:,}"
            found.append(f"the log start of broker {candidate.broker} {rise}: more of the head may be lost")
    then, successor = row.successor, _successor_now(row, now)
    if then is not None and successor != then.broker:
        whom = "nobody" if successor is None else f"broker {successor}"
        found.append(f"should {row.leader} drop out, {whom} would lead, and not {then.broker} as planned")
    return tuple(found)


def _successor_now(row: PlanRow, now: Survey) -> int | None:
    replicas = {replica.broker: replica for replica in now.replicas}
    return next((b for b in row.order[1:] if b in replicas and replicas[b].electable), None)
