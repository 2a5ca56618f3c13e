"""What-if questions: what fails together, and another min ISR."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pipeline.errors import PipelineError
from pipeline.exposure.exposure_summary import SummaryRows
from pipeline.exposure.failure_counts import failure_counts
from pipeline.exposure.what_if import WHAT_IF, WhatIf, check_names, parsed_losses
from pipeline.snapshot.survey_rows import batch_of
from recovery.model import Survey
from tests.pipeline.partition_histories import partition

RACKS = {"c": {1: "a", 2: "b", 3: "c"}}


def answers(rows: list[Survey], what_if: WhatIf) -> dict[tuple[str, str], dict[str, Any]]:
    """The counts of each failure alone, by kind and name."""
    batch = batch_of(rows, {}).append_column("cluster_id", pa.array(["c"] * len(rows)))
    found = [row for part in failure_counts([batch], RACKS, what_if) for row in part.to_pylist()]
    return {(row["kind"], row["failed"][0]): row for row in found if len(row["failed"]) == 1}


def test_three_that_fail_at_once_take_what_no_pair_of_them_takes() -> None:
    rows = [partition(0), partition(1, assignment=(1, 2, 4)), partition(2, assignment=(4, 5, 6))]
    three, mixed = "broker=1,broker=2,broker=3", "rack=a,dir=2:/kafka"
    found = answers(rows, WhatIf(parsed_losses([three, mixed])))
    assert [found[WHAT_IF, three][name] for name in ("partitions", "offline", "under_min_isr")] == [2, 1, 2]
    assert [found[WHAT_IF, mixed][name] for name in ("partitions", "offline", "under_min_isr")] == [2, 0, 2]


def test_with_a_lower_min_isr_the_same_failure_leaves_more_writable() -> None:
    rows = [partition(0, isr=(1, 2)), partition(1, assignment=(1,), min_isr=1)]
    assert answers(rows, WhatIf())["broker", "1"]["under_min_isr"] == 2
    found = answers(rows, WhatIf(min_isr=1))["broker", "1"]
    assert (found["under_min_isr"], found["offline"]) == (1, 1)
    # Never more than a partition has replicas, as Kafka counts it.
    assert answers(rows, WhatIf(min_isr=3))["broker", "2"]["already_under_min_isr"] == 1


@pytest.mark.parametrize("text", ["", "broker", "broker=", "7", "host=7", "host=7,rack=b"])
def test_a_question_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="give what fails together, such as broker=7"):
        check_names(WhatIf(parsed_losses([text])), [{"broker": {"7"}, "rack": {"b"}, "log dir": set()}])


def test_a_typo_does_not_look_like_a_failure_without_effect() -> None:
    known = [
        {"broker": {"1"}, "rack": {"b,c"}, "log dir": set[str]()},
        {"broker": {"7"}, "rack": set[str](), "log dir": {"7:/kafka"}},
    ]
    check_names(WhatIf(parsed_losses(["rack=b,c,broker=7", "dir=7:/kafka"])), known)
    for question, missing in (
        ("rack=b,c,broker=77", "broker=77; there are 1, 7"),
        ("rack=b,host=7", "rack=b,host=7"),
    ):
        with pytest.raises(PipelineError, match=f"no cluster here has {missing}"):
            check_names(WhatIf(parsed_losses([question])), known)


def test_a_cluster_without_what_is_lost_has_no_answer_and_one_with_a_part_of_it_says_which() -> None:
    what_if = WhatIf(parsed_losses(["rack=a,broker=7", "broker=1"]))
    names = {
        "all": {"broker": {"1", "7"}, "rack": {"a"}, "log dir": set[str]()},
        "none": {"broker": {"2"}, "rack": set[str](), "log dir": set[str]()},
        "some": {"broker": {"1"}, "rack": {"a"}, "log dir": set[str]()},
    }
    told = SummaryRows([], []).answered(what_if, names)
    assert [(row["cluster_id"], row["failed"], row["lacks"], row["offline"]) for row in told] == [
        ("all", ["rack=a,broker=7"], [], 0),
        ("all", ["broker=1"], [], 0),
        ("some", ["rack=a,broker=7"], ["broker=7"], 0),
        ("some", ["broker=1"], [], 0),
    ]
