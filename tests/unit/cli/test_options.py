"""Which options exclude and need each other. Nothing listens where the commands are pointed: nothing is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.base.answers import SurveyRequest, SurveyResult
from backends.base.protocol import Progress
from console.provenance import user
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import cluster_of

# Nothing listens on the discard port of the loopback; a command that gets that far says "unreachable", status 3.
CLOSED = ("--bootstrap-server", "127.0.0.1:9")
OFFLINE = "--all-offline-partitions"
RECOVER = "kafka-unclean-recovery"
ELECT = "kafka-elect-leaders"


@pytest.fixture
def wanted(tmp_path: Path) -> str:
    path = tmp_path / "wanted.json"
    path.write_text('{"partitions": [{"topic": "orders", "partitions": [0]}]}')
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((OFFLINE,), "give at least one of --show-replica-info"),
        ((OFFLINE, "--automated-recovery", "--manual-recovery-output-file", "x.json"), "exclude each other"),
        (("--show-replica-info",), "give --path-to-json-file or --all-offline-partitions, one of them"),
        (("--show-replica-info", OFFLINE, "--path-to-json-file", "wanted.json"), "not both"),
        ((OFFLINE, "--automated-recovery", "--strategy", "none"), "--strategy none chooses no leader"),
        ((OFFLINE, "--show-replica-info", "--recovery-duration-ms", "0"), "0 is below 1"),
        ((OFFLINE, "--show-replica-info", "--recovery-duration-ms", "soon"), "not a whole number"),
        ((OFFLINE, "--show-replica-info", "--recovery-election-attempts", "-1"), "-1 is below 0"),
        ((OFFLINE, "--show-replica-info", "--ranking", "length"), "not one of last-record, specification"),
        ((OFFLINE, "--show-replica-info", "--strategy", "bold"), "not one of aggressive, balanced"),
        ((OFFLINE, "--show-replica-info", "--broker", "3"), "give ID=HOST:PORT"),
        ((OFFLINE, "--show-replica-info", "--no-such-option"), "No such option"),
    ],
)
def test_recovery_refuses_options_that_do_not_go_together(
    call: Caller, wanted: str, arguments: tuple[str, ...], said: str
) -> None:
    ended = call(RECOVER, *CLOSED, *arguments)
    assert ended.status == 2
    assert ended.out == ""
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (OFFLINE, "--show-replica-info"),
        (OFFLINE, "--show-replica-info", "--automated-recovery"),
        (OFFLINE, "--show-replica-info", "--manual-recovery-output-file", "new.json"),
        (OFFLINE, "--dry-run"),
        (OFFLINE, "--dry-run", "--automated-recovery"),
        ("--path-to-json-file", "wanted.json", "--automated-recovery"),
        (OFFLINE, "--show-replica-info", "--strategy", "none"),
        (OFFLINE, "--show-replica-info", "--strategy=BALANCED", "--ranking=specification"),
        (
            OFFLINE,
            "--automated-recovery",
            "--recovery-duration-ms",
            "100",
            "--recovery-election-attempts",
            "0",
        ),
    ],
)
def test_recovery_takes_every_mix_that_the_specification_allows(
    call: Caller, wanted: str, arguments: tuple[str, ...]
) -> None:
    ended = call(RECOVER, *CLOSED, *arguments)
    assert ended.status == 3, ended.err
    assert not (call.home / "new.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--all-topic-partitions",), "Missing option '--election-type'"),
        (
            ("--election-type", "random", "--all-topic-partitions"),
            "not one of preferred, unclean, designated",
        ),
        (("--election-type", "preferred"), "give exactly one of"),
        (("--election-type", "preferred", "--all-topic-partitions", "--topic", "a"), "give exactly one of"),
        (
            (
                "--election-type",
                "unclean",
                "--path-to-json-file",
                "wanted.json",
                "--topic",
                "a",
                "--partition",
                "0",
            ),
            "give exactly one of",
        ),
        (("--election-type", "unclean", "--topic", "orders"), "give --topic and --partition together"),
        (("--election-type", "unclean", "--partition", "0"), "give --topic and --partition together"),
        (("--election-type", "designated", "--topic", "a", "--partition", "0"), "from --path-to-json-file"),
        (("--election-type", "designated", "--all-topic-partitions"), "from --path-to-json-file"),
        (
            ("--election-type", "preferred", "--all-topic-partitions", "--strategy", "balanced"),
            "longest-log only",
        ),
        (
            ("--election-type", "unclean", "--all-topic-partitions", "--ranking", "specification"),
            "in unclean elections Kafka chooses, and reads no log",
        ),
        (
            ("--election-type", "preferred", "--all-topic-partitions", "--recovery-election-attempts", "5"),
            "preferred elections read no log, and are sent once",
        ),
        (
            ("--election-type", "longest-log", "--strategy", "complete", "--topic", "a", "--partition", "0"),
            "not one of aggressive, balanced",
        ),
        (
            ("--election-type", "unclean", "--all-topic-partitions"),
            "there is no terminal to ask on: give --yes",
        ),
        (
            ("--election-type", "longest-log", "--all-topic-partitions"),
            "there is no terminal to ask on: give --yes",
        ),
    ],
)
def test_elections_refuse_options_that_do_not_go_together(
    call: Caller, wanted: str, arguments: tuple[str, ...], said: str
) -> None:
    ended = call(ELECT, *CLOSED, *arguments)
    assert ended.status == 2
    assert ended.out == ""
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--election-type", "preferred", "--all-topic-partitions"),
        ("--election-type", "PREFERRED", "--path-to-json-file", "wanted.json"),
        ("--election-type", "unclean", "--all-topic-partitions", "--yes"),
        ("--election-type", "unclean", "--topic", "orders", "--partition", "0"),
        (
            "--election-type",
            "longest-log",
            "--strategy",
            "aggressive",
            "--topic",
            "orders",
            "--partition",
            "0",
        ),
    ],
)
def test_elections_take_every_mix_that_the_specification_allows(
    call: Caller, wanted: str, arguments: tuple[str, ...]
) -> None:
    assert call(ELECT, *CLOSED, *arguments).status == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status",), "give one of --bootstrap-server, --cluster and --simulate"),
        (("replicas", "--bootstrap-server", "a:1", "--cluster", "b"), "exclude each other"),
        (("replicas", "--bootstrap-server", ""), "no address given"),
        (("replicas", "--bootstrap-server", "a:b"), "expected host:port"),
        (("replicas", *CLOSED, "--broker", "1=a:1", "--broker", "1=b:1"), "broker 1 is given twice"),
        (("replicas", "--simulate", "a", "--command-config", "b"), "for a real cluster"),
        (("replicas", *CLOSED, "--all-offline-partitions", "--under-min-isr"), "exclude each other"),
        (("replicas", *CLOSED, "--partition", "0"), "--partition needs exactly one --topic"),
        (("replicas", *CLOSED, "--topic", "a", "--topic", "a"), "--topic a is given twice"),
        (
            ("replicas", *CLOSED, "--command-config", "missing.properties"),
            "missing.properties: cannot be read",
        ),
        (("plan", *CLOSED), "Missing argument 'PLAN'"),
        (("plan", *CLOSED, "x.json", "--strategy", "none"), "ktriage replicas"),
        (("plan", *CLOSED, "x.json", "--topic", "a", "--all-offline-partitions"), "excludes --topic"),
        (("apply", *CLOSED, "p.json", "--digest", "ab"), "give --reviewed-by and --digest together"),
        (("apply", *CLOSED, "p.json", "--reviewed-by", "ada"), "give --reviewed-by and --digest together"),
        (
            ("apply", *CLOSED, "p.json", "--reviewed-by", user(), "--digest", "ab"),
            f"--reviewed-by {user()}: name somebody else",
        ),
        (("apply", *CLOSED, "p.json", "--yes"), "--yes needs --reason TEXT"),
        (("apply", *CLOSED, "p.json", "--first", "0"), "0 is below 1"),
        (("apply", *CLOSED, "p.json"), "p.json: no such file"),
        (("verify", *CLOSED, "p.json"), "p.json: no such file"),
        (("log-dirs", *CLOSED, "--if-fails", "x"), "--if-fails 'x': give BROKER:DIR or BROKER"),
        (("log-dirs", *CLOSED, "--swap", "1"), "--swap '1': give BROKER:DIR"),
        (
            ("restore", *CLOSED, "saved", "--to-source", "--from", "2026-01-02", "--to", "2026-01-01"),
            "--from 2026-01-02 is not before --to 2026-01-01",
        ),
        (
            ("restore", *CLOSED, "saved", "--to-source", "--after-offset", "9", "--before-offset", "10"),
            "no offset is above --after-offset 9 and below --before-offset 10",
        ),
        (("review", "p.json"), "p.json: no such file"),
        (("recovr",), "No such command 'recovr'. Did you mean 'recover'"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(call: Caller, arguments: tuple[str, ...], said: str) -> None:
    ended = call("ktriage", *arguments)
    assert ended.status == 2, str(ended)
    assert ended.out == ""
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("partitions: orders", "expected a list"),
        ("[]", "expected one object"),
        ('{"partitions": []}', "no partition"),
        ('{"partitions": [{"topic": "a", "partitions": [0]}, {"topic": "a", "partition": 0}]}', "twice"),
        ('{"partitions": [{"topic": "a", "partitions": ["0"]}]}', "a.json"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_before_anything_is_asked(
    call: Caller, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "a.json").write_text(text)
    ended = call(RECOVER, *CLOSED, "--path-to-json-file", "a.json", "--automated-recovery")
    assert ended.status == 2, str(ended)
    assert "a.json" in ended.err
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_an_output_file_that_exists_is_refused_and_left_as_it_is(call: Caller, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text("mine")
    ended = call(RECOVER, *CLOSED, OFFLINE, "--manual-recovery-output-file", str(kept), "--dry-run")
    assert ended.status == 2
    assert "exists already" in ended.err
    assert kept.read_text() == "mine"


def test_an_unreachable_cluster_is_status_3_and_names_the_address(call: Caller) -> None:
    ended = call("ktriage", "replicas", *CLOSED)
    assert ended.status == 3
    assert "127.0.0.1:9" in ended.err


def test_a_scenario_that_does_not_exist_is_wrong_usage(call: Caller) -> None:
    ended = call("ktriage", "replicas", "--simulate", "no-such-scenario")
    assert ended.status == 2
    assert "no-such-scenario" in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("kind", ["preferred", "unclean", "longest-log"])
@pytest.mark.parametrize(
    "rows",
    [
        '{"topic": "orders", "partition": 0, "designatedLeader": 2}',
        '{"topic": "orders", "partition": 1}, {"topic": "orders", "partition": 0, "designatedLeader": 2}',
    ],
)
def test_a_file_with_designated_leaders_is_refused_for_every_other_type_of_election(
    call: Caller, kind: str, rows: str
) -> None:
    (call.home / "plan.json").write_text(f'{{"partitions": [{rows}]}}')
    ended = call(ELECT, *CLOSED, "--election-type", kind, "--path-to-json-file", "plan.json")
    assert ended.status == 2, str(ended)
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1
    assert "plan.json" in ended.err
    assert "orders-0" in ended.err
    assert "--election-type designated" in ended.err


def test_a_duration_has_a_unit_and_counts_before_the_file_does(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--duration, then default.api.timeout.ms of client.properties, then 30 seconds."""
    asked: list[float] = []

    backend = cluster_of(1)
    answered = backend.survey

    async def survey(request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        asked.append(request.duration)
        return await answered(request, progress)

    monkeypatch.setattr(backend, "survey", survey)
    on = call.on(backend)
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=7000\n")
    for words in ((), ("--duration", "2m"), ("--duration", "1.5s"), ("--recovery-duration-ms", "900")):
        on("ktriage", "replicas", OFFLINE, *CLOSED, "--command-config", str(config), *words)
    on("ktriage", "replicas", OFFLINE, *CLOSED)
    assert asked == [7.0, 120.0, 1.5, 0.9, 30.0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--duration", "5"), "--duration '5': give a time with its unit, such as 5s, 2m or 500ms"),
        (("--duration", "0s"), "give a time with its unit"),
        (("--duration", "5s", "--recovery-duration-ms", "30000"), "not both"),
    ],
)
def test_a_duration_that_is_none_is_one_line(call: Caller, words: tuple[str, ...], said: str) -> None:
    ended = call("ktriage", "status", *CLOSED, *words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_the_recovery_tool_has_its_own_option_alone(call: Caller) -> None:
    ended = call(RECOVER, *CLOSED, OFFLINE, "--show-replica-info", "--duration", "5s")
    assert (ended.status, "No such option: --duration" in ended.err) == (2, True)
