"""``--metadata-dir``: a copied metadata log tells who was in sync when no controller can be reached.

The last replica standing: 2 was the last in the ISR and is down, 0 and 1 answer, nobody leads.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest

from backends.base.answers import SurveyRequest
from backends.base.judged_partitions import JudgedPartitions, judged
from backends.base.metadata_log import MetadataLogSource
from backends.metadata_log.batch_writer import data_batch
from backends.metadata_log.copied_log import read_copy
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from console.jobs.simulate.rehearsals import _write_metadata_log
from console.reading.copied_log_report import copied_log_lines
from recovery.acknowledged.verdict import ConditionKind, Verdict
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from recovery.model import Unknown
from tests.command_server import Ended
from tests.unit.cli.command_process import invoke

SCENARIO = "last-replica-standing"
HOUR = 3_600_000


class OutOfReach:
    """The simulated cluster, as seen from where no controller can be reached."""

    def __init__(self, backend: SimulatorBackend) -> None:
        self._backend = backend
        self.membership = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._backend, name)


def copied_at(seconds: float | None, folder: Path) -> Path:
    """The log as it was after so many seconds; None: when the operator comes."""
    scenario = read(SCENARIO)
    simulation = SimulatorBackend(scenario, 1).load(0)
    simulation.advance_to(scenario.operator_at if seconds is None else round(seconds * 1_000_000))
    _write_metadata_log(simulation, folder)
    return folder


class PartlyRead(MetadataLogSource):
    """Of the active controller's log only the beginning was read, that in ``folder``, before nobody answered."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._read_so_far = read_copy(folder, HOUR).history

    @property
    def history(self) -> MetadataHistory | Unknown:
        return self._read_so_far


async def _judged(folder: Path | None, source: MetadataLogSource | None = None) -> JudgedPartitions:
    scenario = read(SCENARIO)
    backend = SimulatorBackend(scenario, 1)
    backend.load(0).advance_to(scenario.operator_at)
    states = tuple(state for state in (await backend.partitions()).states if state.offline)
    surveyed = await backend.survey(SurveyRequest(states, 2.0))
    copy = None if folder is None else read_copy(folder, HOUR)
    return await judged(OutOfReach(backend), False, surveyed.surveys, copy=copy, source=source)  # type: ignore[arg-type]


def judged_by(
    folder: Path | None, source: MetadataLogSource | None = None
) -> tuple[JudgedPartitions, Verdict]:
    found = asyncio.run(_judged(folder, source))
    (verdicts,) = found.verdicts.values()
    return found, verdicts.candidates[1]


def test_a_copy_from_after_the_incident_takes_the_place_of_the_controller(tmp_path: Path) -> None:
    """Any broker may have started again after the copy was made, so that stays a condition."""
    found, verdict = judged_by(copied_at(None, tmp_path))
    assert found.copy_use is not None
    assert (found.copy_use.used, found.copy_use.refused) == (1, ())
    assert "ends at 1970-01-01 00:00:40 UTC, 59 min ago, and counts for 1 offline" in " ".join(
        copied_log_lines(found.copy_use)
    )
    assert verdict.none
    assert {one.kind for one in verdict.conditions} == {ConditionKind.RECORDS_KEPT}
    assert not verdict.doubtful


def test_what_stands_behind_a_record_that_kafka_refuses_is_no_evidence(tmp_path: Path) -> None:
    """Broker 2 is registered with another epoch: every node ends there, so that what follows took no effect."""
    copied_at(None, tmp_path)
    _, before = judged_by(tmp_path)
    (segment,) = tmp_path.rglob("*.log")
    end = read_copy(tmp_path, HOUR).history.end_offset
    refused = BrokerRegistrationChangeRecord(2, 12345, fenced=True)
    restart = RegisterBrokerRecord(1, 99, "7VDTRK6GTIuUbnqvtsDYsA", (), None, True, False, ())
    values = (encode(refused), encode(restart))
    batches = (data_batch(end + n, 9, HOUR, [value]) for n, value in enumerate(values))
    segment.write_bytes(segment.read_bytes() + b"".join(batches))
    found, verdict = judged_by(tmp_path)
    assert verdict == before and found.copy_use is not None
    told = " ".join(copied_log_lines(found.copy_use))
    assert f"was read up to offset {end}: Kafka refuses the record at offset {end}" in told, told


def test_a_copy_from_before_the_incident_does_not_count_and_says_why(tmp_path: Path) -> None:
    found, verdict = judged_by(copied_at(1.0, tmp_path))
    assert found.copy_use is not None
    assert found.copy_use.used == 0
    assert "tell payments-0 differently" in str(found.copy_use.refused[0])
    said = " ".join(copied_log_lines(found.copy_use))
    assert "counts for 0 offline partitions" in said
    assert "a copy must end after the partition lost its leader" in said
    assert ConditionKind.NO_UNCLEAN_ELECTION in {one.kind for one in verdict.conditions}


def test_what_was_read_before_the_controller_was_lost_counts_as_a_copy_does(tmp_path: Path) -> None:
    """The cluster may have gone on since: an election here is not called proved without that condition."""
    whole, early = copied_at(None, tmp_path / "whole"), copied_at(1.0, tmp_path / "early")
    _, by_copy = judged_by(whole)
    found, verdict = judged_by(None, PartlyRead(whole))
    assert verdict == by_copy
    assert found.copied and found.copy_use is None
    assert verdict.conditions
    _, too_early = judged_by(early)
    assert judged_by(None, PartlyRead(early))[1] == too_early != verdict


def test_of_a_copy_and_a_log_that_was_partly_read_the_one_counts_that_goes_further(tmp_path: Path) -> None:
    whole, early = copied_at(None, tmp_path / "whole"), copied_at(1.0, tmp_path / "early")
    _, by_whole = judged_by(whole)
    for copy, read_so_far, used in ((whole, early, 1), (early, whole, 0)):
        found, verdict = judged_by(copy, PartlyRead(read_so_far))
        assert verdict == by_whole
        assert found.copy_use is not None and found.copy_use.used == used
        said = " ".join(copied_log_lines(found.copy_use))
        assert ("was not needed: " in said and "though not to its end" in said) is not found.copy_use.needed
        assert found.copy_use.needed is bool(used)


def replicas(home: Path, folder: Path, *words: str) -> Ended:
    copied = ("--metadata-dir", str(folder), *words)
    return invoke(home, "ktriage", "replicas", "--simulate", SCENARIO, "--topic", "payments", *copied)


def test_a_copy_is_not_needed_while_the_controller_answers(tmp_path: Path) -> None:
    folder = copied_at(None, tmp_path / "copy")
    ended = replicas(tmp_path, folder)
    assert "was not needed: the active controller's metadata log was read" in ended.out
    # The plan that comes next is made by the same copy: it is needed where the controller answers no more.
    following = shlex.split(next(ln for ln in ended.err.splitlines() if ln.startswith("next: ktriage plan")))
    assert Path(following[following.index("--metadata-dir") + 1]).parent == folder


@pytest.mark.parametrize("command", [("replicas",), ("recover", "--dry-run"), ("plan", "new.json")])
def test_a_copy_of_another_cluster_is_refused_by_name(tmp_path: Path, command: tuple[str, ...]) -> None:
    folder = copied_at(None, tmp_path / "copy")
    (folder / "meta.properties").write_text("version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n")
    words = ("--all-offline-partitions", "--metadata-dir", str(folder))
    ended = invoke(tmp_path, "ktriage", *command, "--simulate", SCENARIO, *words)
    assert ended.status == 2
    told = (
        "is the metadata log of cluster MkU3OEVBNTcwNTJENDM2Qk; this one is simulated.last-replica-standing.1"
    )
    assert told in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_directory_without_a_log_is_one_line(tmp_path: Path) -> None:
    ended = replicas(tmp_path, tmp_path)
    assert ended.status == 2
    assert "--metadata-dir" in ended.err and "holds no metadata log" in ended.err
