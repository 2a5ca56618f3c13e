"""What a program reads where a command fails; what ``info`` tells; what ``-v``, ``--debug`` and a log file say."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from console.logs import LogOptions
from tests.unit.cli.command_process import Caller

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")
SECRET = "known-to-nobody-else"


@pytest.mark.parametrize(
    ("line", "status", "kind", "message"),
    [
        ("status --bootstrap-server 127.0.0.1:1", 3, "unreachable", "127.0.0.1:1: connection refused"),
        ("status --no-such-option", 2, "usage", "No such option: --no-such-option"),
        ("review p.json", 2, "usage", "p.json: no such file"),
        ("no-such-command", 2, "usage", "No such command 'no-such-command'"),
    ],
)
def test_a_program_reads_the_error_as_json(
    call: Caller, line: str, status: int, kind: str, message: str
) -> None:
    for option in (("--output", "json"), ("--output=json",)):
        ended = call("ktriage", *line.split(), *option)
        document = json.loads(ended.out)
        assert (ended.status, document["status"]) == (status, status)
        assert document["schema"] == "ktriage.error/1" and document["kind"] == kind
        assert message in document["message"] and message in ended.err
    assert call("ktriage", *line.split()).out == ""


def test_results_that_were_written_are_not_followed_by_an_error(call: Caller) -> None:
    ended = call("ktriage", "status", "--simulate", "last-replica-standing", "--output", "json")
    assert ended.status == 1 and json.loads(ended.out)["schema"].startswith("ktriage.status/")


def test_info_tells_where_everything_is(call: Caller) -> None:
    document = json.loads(call("ktriage", "info", "--output", "json").out)
    places = {place["what"]: Path(place["path"]) for place in document["places"]}
    assert (places["pages"] / "files.md").is_file()
    assert str(places["journal, lock and plans"]).startswith(str(call.home))
    extras = {extra["extra"] for extra in document["extras"]}
    assert extras == {"jwt", "kerberos", "large", "metrics", "notify", "pkcs12", "serve", "spark"}
    assert document["version"].startswith("0.") and document["version"] in call("ktriage", "info").out


def test_connections_and_requests_are_written_without_a_secret(call: Caller, tmp_path: Path) -> None:
    config, log = tmp_path / "client.properties", tmp_path / "asked.log"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{SECRET}";\n'
    )
    words = ("status", *NOWHERE, "--command-config", str(config))
    ended = call("ktriage", "-v", *words, "--log-file", str(log))
    assert "127.0.0.1:1: connection refused" in log.read_text() and "Z 127.0.0.1:1: connection" in ended.err
    assert SECRET not in log.read_text() + ended.err
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    asked = call("ktriage", "status", "--debug", "--simulate", "last-replica-standing")
    assert "connected by PLAINTEXT" in asked.err and "DescribeCluster v" in asked.err


def test_a_log_file_that_cannot_be_written_is_named_and_nothing_is_asked(call: Caller) -> None:
    ended = call("ktriage", "status", *NOWHERE, "--log-file", "no/such/folder")
    assert (
        ended.status == 2 and ended.err == "ktriage: --log-file no/such/folder: No such file or directory\n"
    )


def test_the_log_options_stand_anywhere_and_behind_two_dashes_none_is_meant() -> None:
    given = LogOptions(["status", "--debug", "--log-file=f", "--", "-v", "--debug"])
    assert (given.rest, given.debug, given.verbose) == (["status", "--", "-v", "--debug"], True, False)
    assert given.file == Path("f")
