"""What a batch records in the journal before and after each request, and whether a failed request may have
been carried out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.errors import BackendError, NotAllowed, NotOffered
from backends.base.protocol import Recorder
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections.row_results import Named
from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition
from recovery.requests_in_doubt import ELECT, REORDER, REVERT


class NotRecorded(BackendError):
    """The intention could not be recorded, so nothing was sent."""


_UNSENT = {REORDER: "nothing was sent", ELECT: "not elected", REVERT: "not reverted"}


def record(recorder: Recorder, action: str, rows: Sequence[WrittenOrder]) -> str:
    """Records what is about to be sent; returns the entry's id. Raises NotRecorded."""
    try:
        return recorder.before(action, {"rows": rows})
    except Exception as error:
        raise NotRecorded(f"{_UNSENT[action]}: the journal could not be written ({error})") from error


def failed(rows: Sequence[Named], error: BackendError) -> Mapping[str, object]:
    """The journal's end entry for a request that failed as a whole."""
    how = "refused" if surely_not_done(error) else "unknown"
    return {how: {row.tp: str(error) for row in rows}}


def not_sent(rows: Sequence[Named], why: str) -> Mapping[str, object]:
    """The journal's end entry for rows that were left out of a request, or for a request that was not sent."""
    return {"refused": {row.tp: f"not sent: {why}" for row in rows}}


def answered(
    answers: Mapping[TopicPartition, PartitionRefusal | None], left_out: Sequence[TopicPartition] = ()
) -> Mapping[str, object]:
    """The journal's end entry for an answered request, by partition; ``left_out`` were not part of the sent
    request.
    """
    refused = dict.fromkeys(left_out, "not sent") | {
        tp: str(answer) for tp, answer in answers.items() if answer is not None and not answer.doubtful
    }
    unknown = {tp: str(answer) for tp, answer in answers.items() if answer is not None and answer.doubtful}
    applied = [tp for tp, answer in answers.items() if answer is None]
    reported = {"applied": applied, "refused": refused}
    return reported | {"unknown": unknown} if unknown else reported


def surely_not_done(error: BackendError) -> bool:
    """Whether the request has certainly not been carried out."""
    return isinstance(error, (NotAllowed, NotOffered)) or not getattr(error, "sent", True)


def may_pass(error: BackendError) -> bool:
    """Whether the same request may succeed a moment later."""
    return not isinstance(error, (NotRecorded, NotAllowed, NotOffered))
