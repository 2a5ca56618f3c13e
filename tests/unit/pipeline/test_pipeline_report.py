"""Results in the terminal."""

from __future__ import annotations

import io
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from console.errors import InputError
from console.jobs.pipeline.pipeline_page import newest_of_each_job, results_page
from console.jobs.pipeline.pipeline_report import show_result
from console.output.bar_table import bar, by_id, rendered, widths
from console.output.screen import Screen
from pipeline.results import JobResult, RunTarget
from pipeline.storage import storage_path
from tests.pipeline.survey_strategies import NOON

EXPOSED = {
    "cluster_id": "c",
    "partitions": 7,
    "offline": 3,
    "unclean": 2,
    "under_min_isr": 5,
    "already_under_min_isr": 6,
    "saved_by_one_more_in_sync": 1,
    "writable_with_min_isr_one_less": 4,
    "acknowledged_at_risk": 2,
    "acknowledged_outside_isr": 1,
    "elected_whatever_it_lost": 3,
    "place": 1,
}
SUMMARIES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "exposure": (
        {
            "clusters": {"c": ["s"]},
            "what_if": {"lose": ["rack=b,broker=7", "rack=z"], "min_isr": 1, "drain": [3, 4], "elr": False},
        },
        {
            "what_if": [
                EXPOSED
                | {"kind": "what if", "failed": ["rack=b,broker=7"], "together": 1, "lacks": ["broker=7"]}
            ],
            "worst": [
                EXPOSED | {"kind": "rack", "failed": ["a"], "together": 1},
                EXPOSED | {"kind": "broker", "failed": ["1", "2"], "together": 2},
            ],
            "topics": [EXPOSED | {"topic": "orders", "broker": 1}],
            "refused": [{"cluster_id": "d", "snapshot": "", "reason": "it is torn", "rows": -1}],
            "quarantined": [],
        },
        [
            "as if min ISR of every topic were 1",
            "as if brokers 3 and 4 were shut down before anything fails",
            "as if the ELR were off",
            "rack=b,broker=7 (no broker=7 here)",
            "rack=z: nothing of this is in cluster c",
            "both: acknowledged records where partitions go offline or elect at once",
            "only outside the ISR",
            "rack=b,broker=7",
            "one failure",
            "1 + 2",
            "orders",
            "left out: cluster d: it is torn",
            "new under min ISR",
            "?",
        ],
    ),
    "fixes": (
        {"clusters": {"c": ["s"], "d": ["s"]}},
        {
            "kinds": [
                {"cluster_id": "c", "kind": "move", "saves": "copies", "partitions": 2, "bytes": 2048},
                {"cluster_id": "c", "kind": "not fixed", "saves": "writes", "partitions": 5, "bytes": None},
            ],
            "failures": [
                {
                    "cluster_id": "c",
                    "failure": "rack a",
                    "before": 7,
                    "before_copies": 2,
                    "after": 5,
                    "after_copies": 0,
                }
            ],
            "fixes": [
                {
                    "cluster_id": "c",
                    "kind": "move",
                    "topic": "orders",
                    "partition": 3,
                    "partitions": 1,
                    "before": [1, 2],
                    "after": [1, 5],
                    "bytes": 1024,
                    "min_isr": 1,
                },
                {
                    "cluster_id": "c",
                    "kind": "min ISR",
                    "topic": "audit",
                    "partition": None,
                    "partitions": 4,
                    "before": None,
                    "after": None,
                    "bytes": 0,
                    "min_isr": 2,
                },
            ],
            "reasons": [{"cluster_id": "c", "why": "a replica is not in sync", "count": 5}],
            "refused": [],
            "quarantined": [],
        },
        [
            "c: 2.0 KiB to be copied",
            "d: no single failure takes more of a partition than it may",
            "replicas moved",
            "lose every replica in sync",
            "rack a",
            "orders-3",
            "1,5",
            "5 partitions still exposed: a replica is not in sync",
        ],
    ),
    "history": (
        {"clusters": {"c": 4}},
        {
            "gaps": {"c": 1},
            "other_chains": {"c": 2},
            "continued": {"run": "history-1", "clusters": 1, "read_whole": {"d": "2 snapshots came late"}},
            "quarantined": [],
            "refused": [
                {"cluster_id": "c", "snapshot": "3", "reason": "it builds on 2, which is missing", "rows": -1}
            ],
            "counts": [
                {
                    "cluster_id": "c",
                    "kind": "offline",
                    "outcome": "unknown",
                    "incidents": 2,
                    "at_least_s": 60.0,
                }
            ],
            "offenders": [
                {
                    "cluster_id": "c",
                    "topic": "t",
                    "partition": 3,
                    "kind": "offline",
                    "incidents": 2,
                    "at_least_s": 60.0,
                }
            ],
            "longest": [
                {
                    "cluster_id": "c",
                    "topic": "t",
                    "partition": 3,
                    "kind": "offline",
                    "began": "noon",
                    "at_least_s": 60.0,
                    "at_most_s": None,
                    "outcome": "unknown",
                    "how": None,
                    "who": None,
                }
            ],
            "events": [
                {
                    "when": "noon",
                    "cluster_id": "c",
                    "subject": "broker 2",
                    "was": "up",
                    "now": "fenced",
                    "in_a_gap": True,
                }
            ],
        },
        [
            "c: 4 snapshots, 1 gap: what happened there is unknown",
            "; 2 others not used: another collector took them meanwhile",
            "continues history-1: only later snapshots of 1 cluster were read",
            "d: every snapshot was read: 2 snapshots came late",
            "t-3",
            "at least 60",
            "in a gap",
            "cluster c, snapshot 3: it builds on 2, which is missing",
        ],
    ),
}


SUMMARIES["watch"] = (
    {"clusters": {"c": None}, "names": {"c": "production"}},
    {
        "counts": [
            {"cluster_id": "c", "kind": "offline", "outcome": "leader again", "incidents": 4},
            {"cluster_id": "c", "kind": "offline", "outcome": "unknown", "incidents": 1},
        ],
        "open_count": 1,
        "open": [
            {
                "cluster_id": "c",
                "cluster_name": "production",
                "topic": "orders",
                "partition": 7,
                "since": "2026-01-31T12:00:00.090000+00:00",
                "since_exact": False,
                "isr": [],
                "elr": [2, 3],
                "last_known_elr": None,
                "min_isr": None,
            }
        ],
        "topics": [
            {
                "cluster_id": "c",
                "cluster_name": "production",
                "topic": name,
                "incidents": 3,
                "unclean_elections": 0,
                "minutes": minutes,
                "end_unknown": 1,
                "last_since": "2026-01-31T11:00:00+00:00",
            }
            for name, minutes in (("orders", 2.5), ("audit", None))
        ],
    },
    [
        "1 incident open, 5 ended: 0 by an unclean election, 1 at an unknown time",
        "2026-01-31 12:00:00 or before",
        "2,3",
        "2.50",
        "unknown",
    ],
)
SUMMARIES["plan"] = (
    {"clusters": {"c": ["s"]}, "ranking": "last-record", "strategy": "balanced"},
    {
        "verdicts": [
            {"cluster_id": "c", "verdict": "elect", "partitions": 2},
            {"cluster_id": "c", "verdict": "wait", "partitions": 3},
        ],
        "losses": [
            {
                "cluster_id": "c",
                "elect": 2,
                "lossless": 1,
                "unknown": 1,
                "at_least": 0,
                "at_most": None,
                "disagree": 0,
            }
        ],
        "worst": [
            {
                "cluster_id": "c",
                "topic": "orders",
                "partition": 7,
                "chosen": 2,
                "at_least": 0,
                "at_most": None,
                "reason": "best",
            }
        ],
        "partitions": {"c": 9},
        "refused": [],
        "quarantined": [],
    },
    ["ranking last-record, strategy balanced", "2 elect, 3 wait; unknown lost", "orders-7", "unknown"],
)

OF_THE_RUN = (
    "continues history-1: only later snapshots of 1 cluster were read",
    "d: every snapshot was read: 2 snapshots came late",
    "cluster c, snapshot 3: it builds on 2, which is missing",
)
"""What is not on the page: which files a run has read."""


@pytest.mark.parametrize("job", SUMMARIES)
@pytest.mark.parametrize("rows", [0, 1, 20])
def test_a_result_says_what_it_found(job: str, rows: int) -> None:
    asked, summary, said = SUMMARIES[job]
    result = JobResult(RunTarget(storage_path("/results"), "run"), job, NOON, "0.1.0", asked, summary)
    out, err = io.StringIO(), io.StringIO()
    show_result(Screen(lambda: 0.0, out, err), result, rows, json=False)
    for words in said:
        assert words in out.getvalue()
    assert err.getvalue() == "result: file:///results/run\n"


class _PageText(HTMLParser):
    """The texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_says_what_the_terminal_says_with_plots_and_loads_nothing() -> None:
    results = [
        JobResult(
            RunTarget(storage_path("/results"), f"{job}-{day}"),
            job,
            NOON + timedelta(days=day),
            "0.1.0",
            asked,
            made,
        )
        for job, (asked, made, _) in SUMMARIES.items()
        for day in (0, 1)
    ]
    found = newest_of_each_job(reversed(results))
    assert [result.place.name for result in found] == [
        f"{job}-1" for job in ("plan", "exposure", "fixes", "history", "watch")
    ]
    page = results_page(found, 0)
    shown = _PageText()
    shown.feed(page)
    texts = "".join(shown.texts)
    for _, _, said in SUMMARIES.values():
        assert [words for words in said if words not in texts and words not in OF_THE_RUN] == []
    # One plot for each table with bars: what if, one failure and two, each with its acknowledged records; topics;
    # failures before the fixes; the minutes of topics. None of an unknown loss.
    assert page.count('class="bars"') == 9 and "width: 0" not in page
    assert "rack a: 3" in texts and "<script" not in page and "http:" not in page and "https:" not in page


def test_a_hostile_name_is_text_on_the_page() -> None:
    asked, summary, _ = SUMMARIES["exposure"]
    hostile = summary | {"topics": [EXPOSED | {"topic": "<script>alert(1)</script>", "broker": 1}]}
    result = JobResult(RunTarget(storage_path("/results"), "run"), "exposure", NOON, "0.1.0", asked, hostile)
    assert "<script" not in results_page([result], 0)


def test_a_bar_shows_what_is_not_nothing() -> None:
    assert bar(0, 10) == "" and bar(10, 10, 4) == "████" and bar(0.001, 10) == "▏"
    assert bar(5, 0) == ""


def test_at_eighty_columns_every_number_is_whole_and_nothing_is_cut_off() -> None:
    heads = ("what", "fails", "on it", "offline", "unclean only", "saved by one more in sync")
    rows = [("log dir", "2:/kafka/0 + 3:/kafka/0", "1,234,567", "7", "7", "12,345")]
    found = widths(heads, rows, 80)
    assert sum(found) + 3 * (len(heads) - 1) + 2 <= 80
    assert all(size >= len(cell) for size, cell in zip(found[2:], rows[0][2:], strict=True))
    assert widths(heads, rows, 300) == [
        max(len(head), len(cell)) for head, cell in zip(heads, rows[0], strict=True)
    ]


IDS = ("0FLcoI1SYsqjsfqvOw9AGw", "Gw9AOwvqfsjqsYS1IocLF0")
HEADS = ("cluster", "partition", "leader", "loses", "", "why")


def choices(*clusters: str, topic: str = "payments") -> list[tuple[str, ...]]:
    why = "best of 3 of 3 that answered: last record's epoch 7, log end 663284"
    return [(cluster, f"{topic}-3", "65", "997 or more", "█", why) for cluster in clusters]


def test_a_cluster_that_is_the_only_one_stands_in_the_title(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", "80")
    title, *lines = rendered("the worst choices", HEADS, choices(IDS[0], IDS[0]))
    assert title == f"the worst choices, cluster {IDS[0]}"
    assert not any(IDS[0] in line for line in lines)
    assert any("partition " in line for line in lines)


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_ids_of_several_clusters_are_whole(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", columns)
    heads = ("id", "partitions", "to elect", "lose nothing", "lose at least", "", "unknown bound", "others")
    rows = [(name, "1,000,000", "12,345", "12,345", "123,456,789", "█", "12,345", "7 wait") for name in IDS]
    for lines in (
        list(rendered("the worst choices", HEADS, choices(*IDS))),
        list(by_id("clusters", heads, rows)),
    ):
        assert all(any(name in line for line in lines) for name in IDS)
        assert all(len(line) <= int(columns) for line in lines)


@pytest.mark.parametrize("columns", range(100, 180, 10))
def test_a_bar_is_whole_or_not_there(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", str(columns))
    whole = "█" * 18
    rows = [(*row[:4], whole, row[5]) for row in choices(*IDS)]
    drawn = "\n".join(rendered("the worst choices", HEADS, rows))
    assert drawn.count("█") == drawn.count(whole) * 18


def test_one_long_name_takes_no_other_columns_room() -> None:
    found = widths(HEADS, choices(*IDS, topic="t" * 249), 160)
    assert found[-1] >= 40


def test_a_result_of_a_job_that_there_is_not_is_one_line() -> None:
    result = JobResult(RunTarget(storage_path("/results"), "run"), "drill", NOON, "0.1.0", {}, {})
    with pytest.raises(InputError, match="/results/run: a result of drill, which this version"):
        show_result(Screen(lambda: 0.0, io.StringIO(), io.StringIO()), result, 0, json=False)
    assert newest_of_each_job([result]) == []


def _of_many(job: str, clusters: int) -> JobResult:
    """A result with the same rows for every cluster."""
    asked, summary, _ = SUMMARIES[job]
    names = [f"cluster-{number:03}" for number in range(clusters)]
    tables = {
        name: [row | {"cluster_id": cluster} for cluster in names for row in value]
        for name, value in summary.items()
        if isinstance(value, list) and all("cluster_id" in row for row in value)
    }
    if job == "exposure":
        now = {
            "taken_at": "",
            "partitions": 9,
            "offline_now": 0,
            "kind": "rack",
            "failed": ["a"],
            "refused": None,
        }
        tables["fleet"] = [
            EXPOSED | now | {"cluster_id": name, "failures_offline": 1, "failures_at_risk": 1}
            for name in names
        ]
    gaps = {"gaps": dict.fromkeys(names, 1), "other_chains": {}} if job == "history" else {}
    each = {name: 4 if job == "history" else ["s"] for name in names}
    target = RunTarget(storage_path("/results"), "run")
    return JobResult(target, job, NOON, "0.1.0", asked | {"clusters": each}, {**summary, **tables, **gaps})


@pytest.mark.parametrize("job", ["plan", "exposure", "fixes", "history", "watch"])
def test_of_five_hundred_clusters_the_worst_twenty_are_shown_and_the_others_counted(
    job: str,
) -> None:
    out = io.StringIO()
    show_result(Screen(lambda: 0.0, out, io.StringIO()), _of_many(job, 500), 20, json=False)
    lines = out.getvalue().splitlines()
    assert len(lines) < 150 and any(line.startswith("… and ") for line in lines)


def test_a_cluster_of_many_is_shown_by_its_id_as_if_it_were_the_only_one() -> None:
    out = io.StringIO()
    screen = Screen(lambda: 0.0, out, io.StringIO())
    show_result(screen, _of_many("exposure", 500), 20, json=False, cluster_id="cluster-499")
    assert "cluster-499: one failure" in out.getvalue() and "cluster-498" not in out.getvalue()
    with pytest.raises(InputError, match="is not about it"):
        show_result(screen, _of_many("exposure", 5), 20, json=False, cluster_id="cluster-499")


def test_the_first_page_has_at_most_ten_lines_and_each_cluster_a_page_of_its_own() -> None:
    results = [_of_many(job, 30) for job in ("plan", "exposure", "fixes", "history", "watch")]
    page = results_page(results, 20)
    first, *clusters = page.split("<h1>")[1:]
    assert first.count("<li>") <= 10 and "strategy balanced" in first
    assert len(clusters) == 20 and "10 more clusters are not on this page" in page
    assert all(text.startswith("Cluster cluster-0") for text in clusters)
