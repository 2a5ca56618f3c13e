"""The hand-over page: nothing that is open is left out, whatever came before."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NoReturn
from urllib.parse import unquote

import pytest

from backends.base.errors import Unreachable
from console.jobs.incident import incident_view
from console.reading.cluster_reading import ClusterReading
from console.reading.read_cluster import read_cluster
from recovery.survey_columns import SurveyRows
from tests.unit.cli.command_process import Caller

AGREED = ("--yes", "--reason", "a test")
HANGING = ("--simulate", "hanging-transactions")
GONE = ("--simulate", "broker-gone-for-good")
BROKER = ("--broker-id", "3", "--gone-for-good")


@pytest.fixture
def elected(call: Caller) -> Caller:
    planned = call("ktriage", "plan", "--strategy", "aggressive", "plan.json", *HANGING)
    assert planned.status == 0, planned
    assert call("ktriage", "apply", "plan.json", *AGREED, *HANGING).status == 0
    return call


@pytest.mark.parametrize("page", ["handover", "report"])
def test_transactions_that_hang_and_replicas_out_of_the_isr_are_open(elected: Caller, page: str) -> None:
    told = elected("ktriage", page, *HANGING).out
    assert "2 transactions not ended (1 hanging, was committed, 1 hanging, was aborted)" in told, told
    assert "Standing still there, if they read committed records only: auditor." in told, told
    assert "3 partitions led, but not fully replicated" in told and "Not in ISR: " in told, told
    assert "ktriage transactions fix plan.json --dry-run --simulate hanging-transactions" in told, told


def test_what_runs_before_the_period_left_is_said_to_be_left_out(elected: Caller) -> None:
    (journal,) = elected.home.rglob("*.jsonl")
    journal.write_text(re.sub(r'"at":"\d{4}-\d\d-\d\d', '"at":"2020-05-04', journal.read_text()))
    told = elected("ktriage", "handover", *HANGING)
    assert "What 1 run before this period left open was not checked" in told.out, told
    assert "ktriage handover --since 2020-05-04T00:00 --simulate" in told.out, told
    assert "Transactions were not read" in told.out, told
    assert "Broker 3 is fenced since" in told.out, told


def test_that_transactions_could_not_be_read_is_said_once_with_the_reason(
    elected: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> NoReturn:
        raise Unreachable("no broker answers any more")

    monkeypatch.setattr(incident_view, "read_plan_transactions", refused)
    told = elected("ktriage", "handover", *HANGING)
    assert told.out.count("Transactions were not read") == 1, told
    assert "Transactions were not read: no broker answers any more" in told.out


class NoRows(SurveyRows):
    """Surveys of which none is to be created: on a large cluster that takes seconds and a GiB."""

    def __getitem__(self, at: object) -> NoReturn:
        raise AssertionError("a survey was created")

    def __iter__(self) -> NoReturn:
        raise AssertionError("a survey was created")

    def incomplete(self) -> tuple[int, ...]:
        return ()


def test_a_page_creates_no_survey_of_a_partition(elected: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    assert elected("ktriage", "heal", "apply", *BROKER, *AGREED, *GONE).status == 0
    pages = [elected("ktriage", "handover", *one).out for one in (HANGING, GONE)]

    async def without_rows(*asked: Any) -> ClusterReading:
        view = await read_cluster(*asked)
        return replace(view, surveys=NoRows(view.surveys))

    monkeypatch.setattr(incident_view, "read_cluster", without_rows)
    again = [elected("ktriage", "handover", *one).out for one in (HANGING, GONE)]
    assert [page.splitlines()[2:] for page in again] == [page.splitlines()[2:] for page in pages]


def test_an_outage_is_never_said_to_be_shorter_than_it_is(call: Caller) -> None:
    """Virtual time stands still; the pages are made one after the other."""
    status = call("ktriage", "status", *HANGING).out
    (limit,) = re.findall(r"offline for .* at the most", status)
    for page in (("handover",), ("report",), ("report", "--until", "1m")):
        assert limit in call("ktriage", *page, *HANGING).out


def test_after_a_heal_a_simulated_cluster_has_no_step_left(call: Caller) -> None:
    """It does not unregister brokers: of a real cluster that is the last step (tests/live/test_heal.py)."""
    assert call("ktriage", "heal", "apply", *BROKER, *AGREED, *GONE).status == 0
    told = call("ktriage", "handover", *GONE).out
    assert "heal apply" in told and "heal unregister" not in told


def test_a_failed_disk_is_read_before_leaders_are_planned(call: Caller) -> None:
    failed = ("--simulate", "disk-failure")
    told = call("ktriage", "handover", *failed).out
    read = f"ktriage rescue read --to DIR --from-disk LOG_DIR {' '.join(failed)}"
    assert told.count(read) == 1 and told.index(read) < told.index("ktriage plan --all-offline-partitions")


def test_runs_on_another_cluster_with_the_same_id_are_not_what_was_done_to_this_one(elected: Caller) -> None:
    assert "ktriage apply plan.json" in elected("ktriage", "handover", *HANGING).out
    (journal,) = elected.home.rglob("*.jsonl")
    journal.write_text(re.sub(r'"topicId":"[^"]{4}', '"topicId":"AAAA', journal.read_text()))
    told = elected("ktriage", "handover", *HANGING)
    assert "Nothing was sent from this host." in told.out and "apply plan.json" not in told.out, told
    assert "only topics that this cluster does not have" in " ".join(told.out.split()), told
    shown = elected("ktriage", "journal", *HANGING)
    assert "left out: 1 run in the journal of" in shown.err and "apply plan.json" not in shown.out, shown
    cluster_id = unquote(journal.parent.name)
    assert "apply plan.json" in elected("ktriage", "journal", "--cluster-id", cluster_id).out
