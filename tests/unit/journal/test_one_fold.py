"""A run that goes on and the run that reads its journal afterwards agree on what may still be carried out."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from backends.live.elections.sent_elections import SentElections
from recovery.requests_in_doubt import ELECT, REORDER, REVERT, SentRequest
from tests.unit.journal.runs import journal, row
from tests.unit.journal.test_unfinished import found

ROWS = (row(0), row(1), row(2))
ENDS = st.sampled_from(["applied", "refused", "unknown", "not named", "never"])
REQUESTS = st.lists(
    st.tuples(st.sampled_from([REORDER, ELECT, REVERT]), st.lists(ENDS, min_size=3, max_size=3)), max_size=8
)


def facts(requests: tuple[SentRequest, ...]) -> list[tuple[object, ...]]:
    """Everything but entries and times: the two have clocks of their own."""
    return sorted(
        (one.written.tp, one.ordered, str(one.applied), one.write_at is None, one.election_at is None)
        for one in requests
    )


@given(REQUESTS)
def test_a_run_knows_of_its_requests_what_its_journal_tells_the_next_run(
    tmp_path_factory: object, requests: list[tuple[str, list[str]]]
) -> None:
    root: Path = tmp_path_factory.mktemp("state")  # type: ignore[attr-defined]  # pytest.TempPathFactory

    async def run() -> tuple[SentRequest, ...]:
        with journal(root) as recorder:
            sent = SentElections(recorder)
            for action, ends in requests:
                entry = sent.before(action, {"rows": ROWS})
                if "never" not in ends:
                    named = {
                        end: [one.tp for one, its in zip(ROWS, ends, strict=True) if its == end]
                        for end in ends
                    }
                    refused, unknown = (
                        dict.fromkeys(named.get(end, ()), "why") for end in ("refused", "unknown")
                    )
                    sent.after(
                        entry, {"applied": named.get("applied", []), "refused": refused, "unknown": unknown}
                    )
            return sent.requests.open()

    known = asyncio.run(run())
    left = found(root)
    assert facts(known) == facts((*left.orders, *left.elections))
