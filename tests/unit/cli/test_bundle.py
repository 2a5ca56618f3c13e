"""``ktriage bundle``: someone without access to the cluster sees what its operator sees, and plans the same."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from backends.metadata_log.batch_writer import data_batch, leader_change_batch
from backends.metadata_log.batches import BatchReader
from backends.metadata_log.without_secrets import without_secrets
from backends.recorded_answers import RecordedGroups
from console.bundle_files import open_bundle
from console.jobs.incident.bundle_names import OtherNames, Redaction
from recovery.metadata_log.record_codec import decode, encode
from recovery.metadata_log.records import ConfigRecord, RecordType, ResourceType, Skipped, TopicRecord
from tests.command_server import Ended
from tests.unit.cli.command_process import invoke
from tests.unit.disk_scan.evidence_files import evidence_file, scanned_log

SCENARIOS = ("stale-long-tail", "disk-failure", "groups-on-the-stale-tail", "two-of-three-voters-lost")
LATER = ("plan", "planFile", "offlineSinceMs")
"""What tells one making of a plan from another. A simulation has no time of day: its moments are told from the time
at which it is read."""


def bundled(home: Path, scenario: str, *words: str) -> Path:
    to = home / f"{scenario}.ktriage"
    ended = invoke(home, "ktriage", "bundle", "--simulate", scenario, "--to", str(to), *words)
    assert to.exists(), ended.err
    return to


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """By scenario: the home of the operator, and the bundle."""
    made = {}
    for scenario in SCENARIOS:
        home = tmp_path_factory.mktemp(scenario)
        made[scenario] = home, bundled(home, scenario)
    return made


def on(home: Path, bundle: Path, name: str, *words: str) -> Ended:
    return invoke(home, "ktriage", name, "--bundle", str(bundle), *words)


def without(document: Any, *names: str) -> Any:
    """The document without those members, at any depth."""
    if isinstance(document, dict):
        return {key: without(value, *names) for key, value in document.items() if key not in names}
    return [without(value, *names) for value in document] if isinstance(document, list) else document


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_plan_is_the_one_that_the_operator_makes(
    bundles: dict[str, tuple[Path, Path]], scenario: str, tmp_path: Path
) -> None:
    home, bundle = bundles[scenario]
    for strategy in ("balanced", "aggressive"):
        words = ("--strategy", strategy, "--output", "json")
        theirs = on(tmp_path, bundle, "plan", *words, str(tmp_path / f"{strategy}.json"))
        own = invoke(home, "ktriage", "plan", "--simulate", scenario, *words, str(home / f"{strategy}.json"))
        assert theirs.status == own.status

        assert without(json.loads(theirs.out), *LATER) == without(json.loads(own.out), *LATER)


def test_two_people_make_the_same_file_and_a_journal_of_their_own_changes_nothing(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    _, bundle = bundles["stale-long-tail"]
    files = []
    for name in ("one", "other"):
        home = tmp_path / name
        home.mkdir()
        if name == "other":
            ran = (
                "recover",
                "--simulate",
                "stale-long-tail",
                "--automated-recovery",
                "--all-offline-partitions",
                "--strategy",
                "aggressive",
                "--reason",
                "x",
            )
            assert invoke(home, "ktriage", *ran).status == 0
        assert on(home, bundle, "plan", "--strategy", "aggressive", str(home / "plan.json")).status == 0
        files.append((home / "plan.json").read_bytes())
    assert files[0] == files[1]


def test_what_is_shown_says_first_that_it_is_a_bundle_and_of_when(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    home, bundle = bundles["disk-failure"]
    theirs = on(tmp_path, bundle, "status").out.splitlines()
    own = invoke(home, "ktriage", "status", "--simulate", "disk-failure").out.splitlines()
    assert theirs[0].startswith("BUNDLE, as of ") and theirs[0].endswith(
        f" UTC, nothing asked now · {own[0]}"
    )
    assert [line for line in theirs[1:] if "voter" not in line] == [
        line for line in own[1:] if "voter" not in line
    ]


@pytest.mark.parametrize("name", ["replicas", "log-dirs", "groups", "timeline", "handover"])
def test_every_command_that_only_reads_answers_as_there(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path, name: str
) -> None:
    home, bundle = bundles["groups-on-the-stale-tail"]
    theirs = on(tmp_path, bundle, name)
    own = invoke(home, "ktriage", name, "--simulate", "groups-on-the-stale-tail")
    assert theirs.status == own.status
    if name in ("log-dirs", "groups", "timeline"):
        first = 1 if name == "timeline" else 0  # it names the source
        assert theirs.out.splitlines()[first:] == own.out.splitlines()[first:]
    else:
        assert theirs.out


def test_the_quorum_is_told_from_the_bundle_also_where_nobody_leads(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    home, bundle = bundles["two-of-three-voters-lost"]
    theirs = invoke(tmp_path, "ktriage", "quorum", "status", "--bundle", str(bundle))
    own = invoke(home, "ktriage", "quorum", "status", "--simulate", "two-of-three-voters-lost")
    assert theirs.status == own.status
    assert "NO LEADER" in on(tmp_path, bundle, "status").out
    assert ("not in the bundle" in theirs.err) and theirs.out == own.out


@pytest.mark.parametrize(
    "words",
    [
        ("elect", "--election-type", "unclean", "--all-topic-partitions"),
        (
            "recover",
            "--automated-recovery",
            "--all-offline-partitions",
            "--reason",
            "x",
            "--strategy",
            "aggressive",
        ),
    ],
)
def test_nothing_can_be_changed(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path, words: tuple[str, ...]
) -> None:
    ended = on(tmp_path, bundles["stale-long-tail"][1], words[0], *words[1:])
    assert ended.status != 0 and "bundle" in ended.err and not (tmp_path / "plan.json").exists()


def test_a_scanned_disk_counts_as_the_answer_of_its_broker(tmp_path: Path) -> None:
    told = invoke(tmp_path, "ktriage", "replicas", "--simulate", "stale-long-tail", "--output", "json").out
    partition = json.loads(told)["partitions"][0]
    log = scanned_log("payments", partition["topicId"], ((0, 0, 1000), (2, 1000, 1300), (3, 1300, 1320)), 4)
    disk = evidence_file(tmp_path / "broker-3.json", 3, "simulated.stale-long-tail.1", log)
    bundle = bundled(tmp_path, "stale-long-tail", "--evidence", str(disk))
    told = on(tmp_path, bundle, "replicas", "--topic", "payments", "--output", "json").out
    ends = {one["broker"]: one.get("logEndOffset") for one in json.loads(told)["partitions"][0]["logs"]}
    assert ends == {1: 1500, 2: 1300, 3: 1320}
    assert "evidence/broker-3.json" in zipfile.ZipFile(bundle).namelist()


def test_no_name_is_in_a_redacted_bundle_and_a_plan_from_it_gets_the_clusters_own(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    scenario = "groups-on-the-stale-tail"
    bundle = bundled(there, scenario, "--redact")
    names = there / f"{bundle.name}.names"
    known = json.loads(names.read_text())
    assert known["topics"] == {"payments": "topic-1"} and known["groups"]["billing"] == "group-2"
    with zipfile.ZipFile(bundle) as archive:
        for member in archive.namelist():
            content = archive.read(member)
            for kind in ("topics", "groups", "hosts"):
                assert not [name for name in known[kind] if name.encode() in content], member
    made = here / "plan.json"
    assert on(here, bundle, "plan", "--strategy", "aggressive", str(made)).status == 0
    assert "payments" not in made.read_text()
    own, expected = there / "own.json", there / "expected.json"
    ended = invoke(there, "ktriage", "bundle", "--names", str(names), str(made), str(own))
    assert ended.status == 0 and "its own digest: " in ended.out
    words = ("plan", "--simulate", scenario, "--strategy", "aggressive", str(expected))
    assert invoke(there, "ktriage", *words).status == 0
    rows = [without(json.loads(file.read_text())["partitions"], *LATER) for file in (own, expected)]
    assert rows[0] == rows[1]
    wrong = invoke(there, "ktriage", "bundle", "--names", str(made), str(made), str(there / "x.json"))
    assert wrong.status == 2 and "is no file of names" in wrong.err and not (there / "x.json").exists()


def test_a_group_that_has_a_topics_name_keeps_its_offsets_in_a_redacted_bundle(
    bundles: dict[str, tuple[Path, Path]],
) -> None:
    answers = open_bundle(bundles["groups-on-the-stale-tail"][1])[1].answers
    groups = answers.groups
    assert isinstance(groups, RecordedGroups)
    first = groups.listing.groups[0]
    listing = replace(groups.listing, groups=(first._replace(name="payments"), *groups.listing.groups[1:]))
    committed = tuple(
        replace(one, group="payments") if one.group == first.name else one for one in groups.committed
    )
    members = {"payments": groups.members[first.name], **groups.members}
    del members[first.name]
    answers = replace(answers, groups=RecordedGroups(listing, committed, members))
    names = OtherNames.of(answers)
    hidden = Redaction(names).answers(answers).groups
    assert isinstance(hidden, RecordedGroups)
    other = names.groups["payments"]
    assert other.startswith("group-") and names.topics["payments"] == "topic-1"
    listed = {group.name for group in hidden.listing.groups}
    assert {one.group for one in hidden.committed} == listed == set(hidden.members)


def changed(bundle: Path, to: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(bundle) as source, zipfile.ZipFile(to, "w") as target:
        for member in source.namelist():
            target.writestr(member, content if member == name else source.read(member))
        if name not in source.namelist():
            target.writestr(name, content)
    return to


def test_a_bundle_that_was_changed_is_refused_in_one_line(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    _, bundle = bundles["stale-long-tail"]
    answers = zipfile.ZipFile(bundle).read("answers.json").replace(b"1500", b"1400")
    manifest = zipfile.ZipFile(bundle).read("manifest.json")
    other = manifest.replace(b"bundle-manifest/1", b"bundle-manifest/9")
    outside = manifest.replace(b"answers.json", b"../answers.json")
    cases = {
        "answers.json is not what its manifest says": ("answers.json", answers),
        "has more.json, which its manifest does not name": ("more.json", b"{}"),
        "is a bundle of the format 'ktriage.bundle-manifest/9'": ("manifest.json", other),
        "which is no name of a member": ("manifest.json", outside),
        "it has no manifest.json that can be read": ("manifest.json", b"[]"),
    }
    for number, (expected, (name, content)) in enumerate(cases.items()):
        file = changed(bundle, tmp_path / f"{number}.ktriage", name, content)
        ended = on(tmp_path, file, "status")
        assert (ended.status, ended.out) == (2, "") and expected in ended.err, (expected, ended.err)
    part = tmp_path / "part.ktriage"
    part.write_bytes(bundle.read_bytes()[:1000])
    for file, expected in ((part, "is no bundle of ktriage"), (tmp_path / "none", "No such file")):
        ended = on(tmp_path, file, "status")
        assert ended.status == 2 and expected in ended.err


def test_no_file_is_overwritten_and_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    bundle = bundled(tmp_path, "stale-long-tail")
    again = invoke(tmp_path, "ktriage", "bundle", "--simulate", "stale-long-tail", "--to", str(bundle))
    assert again.status == 2 and "exists already" in again.err
    part = tmp_path / "next.ktriage.part"
    copied = invoke(
        tmp_path,
        "ktriage",
        "metadata-log",
        "copy",
        "--simulate",
        "stale-long-tail",
        "--to",
        str(part / "copy"),
    )
    assert copied.status == 0
    ended = invoke(
        tmp_path, "ktriage", "bundle", "--simulate", "stale-long-tail", "--to", str(tmp_path / "next.ktriage")
    )
    assert "it goes on with the copy of the metadata log" in ended.err and not part.exists()
    log = "metadata-log/__cluster_metadata-0/00000000000000000000.log"
    assert zipfile.ZipFile(tmp_path / "next.ktriage").read(log) == zipfile.ZipFile(bundle).read(log)


def test_no_secret_of_the_metadata_log_is_in_the_copy_and_every_offset_is() -> None:
    scram = bytes((1, RecordType.USER_SCRAM_CREDENTIAL, 0)) + b"\x06alice-and-her-salted-password"
    unknown = bytes((1, 99, 0)) + b"nobody knows what this is"
    topic = encode(TopicRecord("payments", "AAAAAAAAAAAAAAAAAAAAAQ"))
    secret = encode(ConfigRecord(ResourceType.BROKER, "1", "listener.name.x.ssl.key.password", "hunter2"))
    plain = encode(ConfigRecord(ResourceType.TOPIC, "payments", "min.insync.replicas", "2"))
    log = b"".join(
        (
            leader_change_batch(0, 1, 500, 100, [100]),
            data_batch(1, 1, 1000, [topic, scram, secret, plain]),
            data_batch(5, 1, 2000, [unknown]),
            data_batch(6, 2, 3000, [plain]),
        )
    )
    kept = without_secrets(log, "(left out)")
    assert b"alice" not in kept and b"hunter2" not in kept and b"nobody" not in kept
    reader = BatchReader(kept, 0)
    records = [
        (batch.base, batch.epoch, record) for batch in reader.data_batches() for record in batch.records
    ]
    assert reader.problem is None and reader.next_offset == 7
    left_out = encode(
        ConfigRecord(ResourceType.BROKER, "1", "listener.name.x.ssl.key.password", "(left out)")
    )
    assert [(base, epoch, *record) for base, epoch, record in records] == [
        (1, 1, 1, 1000, topic),
        (1, 1, 2, 1000, scram[:3]),
        (1, 1, 3, 1000, left_out),
        (1, 1, 4, 1000, plain),
        (5, 1, 5, 2000, unknown[:3]),
        (6, 2, 6, 3000, plain),
    ]
    # Who reads the copy sees as before that it does not know that record: nothing behind it is evidence.
    assert decode(unknown[:3]) == Skipped(99, 0)
    assert decode(left_out) == ConfigRecord(4, "1", "listener.name.x.ssl.key.password", "(left out)")
    untouched = [header for header, _ in SegmentReader(SegmentBytes(kept))][-1]
    assert untouched == [header for header, _ in SegmentReader(SegmentBytes(log))][-1]


def test_the_report_from_a_bundle_names_the_elections_that_the_clusters_own_names(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    """Its period ends when the bundle was read, and a simulation's times are its own there too."""
    home, bundle = bundles["stale-long-tail"]
    own = invoke(home, "ktriage", "report", "--simulate", "stale-long-tail", "--output", "json")
    theirs = on(tmp_path, bundle, "report", "--output", "json")
    documents = [json.loads(ended.out) for ended in (own, theirs)]
    assert documents[0]["events"], "the scenario has a past"
    assert documents[0]["events"] == documents[1]["events"]
    assert documents[0]["outages"] == documents[1]["outages"]


@pytest.mark.parametrize("command", ["log-dirs", "timeline", "report"])
def test_every_command_on_a_bundle_says_once_that_nothing_is_asked(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path, command: str
) -> None:
    _, bundle = bundles["groups-on-the-stale-tail"]
    ended = on(tmp_path, bundle, command)
    assert ended.err.count(": nothing is asked now") == 1, ended
    assert ended.err.count("not in the bundle (its manifest says why)") == 1, ended


@pytest.mark.parametrize("words", [("readiness",), ("bundle", "--to", "again.ktriage")])
def test_what_asks_a_cluster_is_refused_on_a_bundle_before_anything_is_written(
    bundles: dict[str, tuple[Path, Path]], tmp_path: Path, words: tuple[str, ...]
) -> None:
    _, bundle = bundles["stale-long-tail"]
    ended = on(tmp_path, bundle, *words)
    assert ended.status == 2, ended
    assert "a bundle is the cluster as it was. Name the cluster itself" in ended.err
    assert not [path.name for path in tmp_path.iterdir() if "again" in path.name]
