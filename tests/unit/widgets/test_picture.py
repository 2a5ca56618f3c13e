"""The picture of the logs, read as text: what a person sees who sees no colour."""

from __future__ import annotations

import pytest

from recovery.model import ReplicaLog, Survey
from recovery.offset_axis import make_axis
from recovery.ranking import Ranking
from tests.unit.widgets import examples
from widgets.log_diagram import LABEL, epoch_style, losses, picture
from widgets.text import plain, width_of


def drawn(survey: Survey, width: int = 78, ranking: Ranking = Ranking.LAST_RECORD) -> dict[str, str]:
    """The picture's lines by what stands before them."""
    lines = [plain(line) for line in picture(survey, ranking, width)]
    named = {line[:LABEL].strip(): line[LABEL:] for line in lines if line[:LABEL].strip()}
    return named | {"text": "\n".join(lines)}


@pytest.mark.parametrize("survey", examples.SURVEYS, ids=lambda survey: str(survey.tp))
@pytest.mark.parametrize("width", [60, 78, 118, 198])
def test_no_line_is_wider_than_the_screen(survey: Survey, width: int) -> None:
    assert max(width_of(line) for line in picture(survey, Ranking.LAST_RECORD, width)) <= width


def test_where_the_logs_part_every_line_agrees_on_the_column() -> None:
    seen = drawn(examples.stale_long_tail())
    one, two = seen["broker 1"], seen["broker 2"]
    (parting,) = (line for line in seen["text"].splitlines() if "part at 1,000" in line)
    column = parting.index("▲") - LABEL
    assert one[:column].count(epoch_style(0)[0]) and two[column] == epoch_style(2)[0]
    assert epoch_style(0)[0] in one[column:] and epoch_style(0)[0] not in two[column:].split(",")[0]
    assert seen["elect 2"].index("x") == column
    assert seen["elect 1"].index("x") == column


def test_each_choice_shows_how_much_it_cuts_off_and_of_which_kind() -> None:
    seen = drawn(examples.stale_long_tail())
    assert "loses 500 or more, old" in seen["elect 2"]
    assert "loses 300 or more, NEWER" in seen["elect 1"]
    longer, shorter = seen["elect 2"].count("x"), seen["elect 1"].count("x")
    assert longer > shorter > 3
    assert list(seen).index("elect 2") < list(seen).index("elect 1"), "the best stands first"


def test_after_the_election_there_is_nothing_to_choose() -> None:
    survey = examples.stale_long_tail()
    led = survey._replace(state=survey.state._replace(leader=2, isr=(2,)))
    seen = drawn(led)
    assert "broker 1" in seen and "high watermark" in seen["text"]
    assert "CUTS OFF" not in seen["text"] and "elect 2" not in seen
    assert losses(led, Ranking.LAST_RECORD, {}, 78) == []


def test_who_did_not_answer_is_a_question_and_not_an_empty_log() -> None:
    seen = drawn(examples.stale_long_tail())
    assert seen["broker 3"].startswith("? not answered")
    assert "elect 3" not in seen


def test_a_fenced_replica_is_drawn_and_cannot_be_chosen() -> None:
    seen = drawn(examples.fenced_but_better())
    assert " e9 " in seen["broker 3"]
    assert "cannot: fenced" in seen["elect 3"]


def test_epochs_that_may_not_be_asked_for_are_not_invented() -> None:
    seen = drawn(examples.refused())
    assert set(seen["broker 1"].split()[0]) == {"?"}
    assert "epoch ?" in seen["broker 1"]
    assert "loss unknown" in seen["elect 2"]
    assert "?" in seen["elect 2"].split("loses")[0], "unlike a choice that loses nothing"
    assert "? may lose what a silent replica holds" in seen["text"]


def test_five_records_at_the_end_of_ten_million_are_seen() -> None:
    seen = drawn(examples.many_epochs())
    assert "part at 10,000,000" in seen["text"]
    assert seen["elect 2"].count("x") >= 3
    assert "not to scale" in seen["text"]


def test_equal_logs_are_said_to_be_equal() -> None:
    assert "the same up to their ends" in drawn(examples.all_answered())["text"]


def test_nobody_answered_is_said() -> None:
    nobody = examples.survey(examples.state("t"), {})
    assert drawn(nobody)["text"] == "no replica answered: there is nothing to draw"


def test_an_empty_log_is_drawn_without_records() -> None:
    nothing, some = examples.log((0, 0, 0), hw=0), examples.log((0, 0, 9), hw=3)
    empty = examples.survey(examples.state("t"), {1: nothing, 2: some})
    only = examples.survey(examples.state("t"), {1: examples.log((0, 0, 0), hw=0)})
    assert "end 0" in drawn(empty)["broker 1"]
    assert "end 0" in drawn(only)["broker 1"]


def test_the_axis_keeps_the_order_of_offsets() -> None:
    axis = make_axis([0, 10, 10_000_000, 10_000_005, 10_000_006], 40)
    assert axis.columns == tuple(sorted(set(axis.columns)))
    assert axis.width == 40
    columns = [axis.column(offset) for offset in (0, 5, 10, 9_000_000, 10_000_000, 10_000_005, 10_000_006)]
    assert columns == sorted(columns)


def test_a_log_that_is_only_shorter_does_not_part() -> None:
    whole, short = examples.log((3, 0, 100), hw=90), examples.log((3, 0, 60), hw=60)
    seen = drawn(examples.survey(examples.state("t"), {1: whole, 2: short}))["text"]
    assert "▲ 2 ends at 60, 1 goes on" in seen
    assert "part at" not in seen
    two = drawn(examples.survey(examples.state("t"), {1: whole, 2: short, 3: short}))["text"]
    assert "▲ 2 and 3 end at 60, 1 goes on" in two


def test_logs_without_an_epoch_in_common_are_not_called_the_same() -> None:
    """An interrupted survey, or one that did not ask far enough down."""

    def upwards_of(floor: int, epoch: int) -> ReplicaLog:
        found = examples.log((epoch, floor, 1_000), hw=990)
        return found._replace(log_start_offset=100)

    seen = drawn(examples.survey(examples.state("t"), {1: upwards_of(800, 7), 2: upwards_of(700, 6)}))["text"]
    assert "2 and 1 have no epoch in common" in seen
    assert "the same up to" not in seen
    assert "· epoch not asked" in " ".join(seen.split())


def test_a_head_that_is_given_up_is_cut_off_at_the_left() -> None:
    risen, whole = examples.log((3, 500, 900), hw=900), examples.log((3, 0, 900), hw=900)
    seen = drawn(examples.survey(examples.state("t"), {1: risen, 2: whole}))
    assert seen["elect 1"].startswith("x") and "loses 500 or more" in seen["elect 1"]
    assert "x" not in seen["elect 2"].split("loses")[0]
