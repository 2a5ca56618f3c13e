"""Elections without an answer, as the next run finds them."""

from __future__ import annotations

from pathlib import Path

from console.journal.planned_elections import PLANNED, ElectionResult, results_detail
from tests.unit.journal.runs import journal
from tests.unit.journal.test_unfinished import ROWS, TPS, found, reorder


def test_an_election_is_in_doubt_from_its_line_on_until_an_answer_is_recorded(tmp_path: Path) -> None:
    def in_doubt() -> list[int]:
        return [o.written.tp.partition for o in found(tmp_path).orders if o.election_at is not None]

    with journal(tmp_path) as run:
        reorder(run)
        assert in_doubt() == []
        entry = run.before("elect", {"rows": ROWS})
        assert in_doubt() == [0, 1], "killed here, the election may be carried out"
        run.after(entry, {"applied": [TPS[0]], "unknown": {TPS[1]: "no answer"}})
        assert in_doubt() == [1]


def elections_in_doubt(root: Path) -> list[int]:
    return [one.written.tp.partition for one in found(root).elections]


def test_an_election_without_a_new_order_is_in_doubt_too(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        entry = run.before("elect", {"rows": ROWS})
        assert elections_in_doubt(tmp_path) == [0, 1], "killed here, the election may be carried out"
        run.after(entry, {"applied": [TPS[0]], "unknown": {TPS[1]: "no answer"}})
        assert elections_in_doubt(tmp_path) == [1]
        run.after(run.before("elect", {"rows": ROWS[1:]}), {"refused": {TPS[1]: "not sent"}})
        assert elections_in_doubt(tmp_path) == [1], "the first request may still come"
        assert not found(tmp_path).nothing
        run.after(run.before("elect", {"rows": ROWS[1:]}), {"applied": [TPS[1]]})
    assert found(tmp_path).nothing


def test_an_election_of_a_killed_run_stays_in_doubt_until_its_partition_is_settled(tmp_path: Path) -> None:
    """Another change closes the request, because it holds up nothing, and leaves the election in doubt."""
    with journal(tmp_path) as run:
        entry = run.before("elect", {"rows": ROWS})
        run.settle("nothing is left to undo", entries=[entry])
        assert elections_in_doubt(tmp_path) == [0, 1]
        run.settle("a later run checked it", rows=TPS[:1])
        assert elections_in_doubt(tmp_path) == [1]
        run.settle("a later run checked it", rows=TPS[1:])
    assert found(tmp_path).nothing


def test_an_election_of_a_partition_that_then_had_a_leader_is_not_in_doubt(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        whole = run.before(PLANNED, {})
        run.after(run.before("elect", {"rows": ROWS}), {"unknown": dict.fromkeys(TPS, "no answer")})
        ends = [ElectionResult(TPS[0], "elected", -1, 2, 5), ElectionResult(TPS[1], "failed", -1, -1, -1)]
        run.after(whole, results_detail(ends))
    assert elections_in_doubt(tmp_path) == [1]
