"""Profiles: what an operator writes into clusters.yaml, and what is said of a mistake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backends.live.client.addresses import Address
from backends.live.client.settings import ControllerAccess
from console.backends import controller_access, settings
from console.errors import InputError
from console.settings import load, named_profile, named_profiles, why_only_read
from console.target import Target, resolve
from tests.unit.cli.command_process import Caller

GOOD = """\
clusters:
  production:
    bootstrap: kafka-1:9092,kafka-2:9092
    command-config: /etc/kafka/client.properties
    colour: red
    read-only: true
    tiers:
      critical: [payments*, ledger]
      standard: [orders*]
    brokers:
      3: 127.0.0.1:19093
  lab:
    bootstrap: lab:9092
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "clusters.yaml"
    path.write_text(text)
    return path


CONTROLLERS = """\
clusters:
  far:
    bootstrap: kafka-1:9092
    command-config: /etc/kafka/brokers.properties
    controllers:
      bootstrap: controller-1:9093,controller-2:9093
      command-config: /etc/kafka/controllers.properties
      addresses:
        100: 127.0.0.1:19100
        101: controller-2.example@127.0.0.1:19101
"""


def test_controllers_have_a_listener_and_addresses_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ktriage").mkdir()
    written(tmp_path / "ktriage", CONTROLLERS)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    target = resolve(None, "far", None, None, controller=("100=10.0.0.1:9093",))
    assert target.controllers == "controller-1:9093,controller-2:9093"
    assert target.controllers_config == Path("/etc/kafka/controllers.properties")
    assert target.controller_addresses == {
        100: Address("10.0.0.1", 9093),
        101: Address("127.0.0.1", 19101, "controller-2.example"),
    }
    assert target.arguments == ("--cluster", "far", "--controller", "100=10.0.0.1:9093")


def test_the_access_to_controllers_is_that_of_the_profile_or_of_the_file(tmp_path: Path) -> None:
    of_brokers = tmp_path / "brokers.properties"
    of_brokers.write_text("client.id=brokers\nbootstrap.controllers=controller-1:9093\n")
    plain = Target("live", bootstrap="kafka-1:9092")
    assert access(plain) is None, "the same settings, at the addresses that the quorum tells"
    by_file = access(replace(plain, command_config=of_brokers))
    assert by_file is not None and by_file.settings.client_id == "brokers"
    assert by_file.settings.bootstrap == (Address("controller-1", 9093),)
    own = tmp_path / "controllers.properties"
    own.write_text("client.id=controllers\n")
    found = access(replace(plain, controllers="controller-9:9093", controllers_config=own))
    assert found is not None and found.settings.client_id == "controllers"
    assert found.settings.bootstrap == (Address("controller-9", 9093),)


def access(target: Target) -> ControllerAccess | None:
    return controller_access(target, settings(target, print), print)


def test_a_profile_has_all_that_is_needed_to_connect(tmp_path: Path) -> None:
    found = load(written(tmp_path, GOOD)).clusters["production"]
    assert found.bootstrap == "kafka-1:9092,kafka-2:9092"
    assert found.command_config == Path("/etc/kafka/client.properties")
    assert found.colour == "red"
    assert found.read_only
    assert list(found.tiers.items()) == [("critical", ("payments*", "ledger")), ("standard", ("orders*",))]
    assert found.brokers == {3: "127.0.0.1:19093"}
    assert not load(tmp_path / "clusters.yaml").clusters["lab"].read_only


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("clusters:\n  a:\n    bootstrp: x:1\n", 3, "bootstrp"),
        ("clusters:\n  a:\n    colour: red\n", 2, "bootstrap"),
        (
            "clusters:\n  a:\n    bootstrap: x:1\n    kube: {namespace: kafka, cluster: c}\n",
            2,
            "give bootstrap, or kube for a cluster in Kubernetes",
        ),
        ("clusters:\n  a:\n    kube: {namespace: kafka}\n", 3, "kube.cluster"),
        ("clusters:\n  a:\n    kube: {namespace: --all, cluster: c}\n", 3, "kube.namespace"),
        ("clusters:\n  a:\n    bootstrap: x:1\n    colour: pink\n", 4, "colour"),
        ("clusters:\n  a:\n    bootstrap: x:1\n    brokers:\n      three: y:1\n", 5, "brokers"),
        ("clusters:\n  a:\n    bootstrap: x:1\n  a:\n    bootstrap: y:1\n", 4, "a: the key is given twice"),
        ("clusters:\n  a:\n    bootstrap: x:1\n    tiers:\n      gold: payments\n", 5, "tiers.gold"),
        ("clusters:\n  a:\n    bootstrap: x:1\n    tiers: [payments]\n", 4, "tiers"),
        ("clusters:\n  a:\n    bootstrap: x:1\n    state-dir: shared\n", 4, "shared: give the whole path"),
        ("clusters:\n  a: [\n", 3, "not YAML"),
        ("clusters: 3\n", 1, "clusters"),
        ("", 1, "clusters"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        load(path)
    message = str(refused.value)
    assert message.startswith(f"{path}:{line}: ")
    assert said in message
    assert "\n" not in message


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Where the profiles of the user and of the host are; neither is there yet."""
    own, of_host = tmp_path / "own" / "ktriage", tmp_path / "etc"
    own.mkdir(parents=True)
    of_host.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    for module in ("console.settings", "console.target"):
        monkeypatch.setattr(f"{module}.SYSTEM_PROFILES", of_host / "clusters.yaml")
    return own, of_host


def test_a_missing_file_and_an_unknown_profile_say_what_to_do(files: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="profiles of clusters are read from there"):
        named_profile("a")
    written(files[0], GOOD)
    with pytest.raises(InputError, match="no cluster named 'prod'; it has: lab, production"):
        named_profile("prod")


OF_HOST = """\
change-groups: [no-group-of-this-name]
clusters:
  production: {bootstrap: "shared:9092", read-only: true}
  archive: {bootstrap: "archive:9092"}
"""


def test_a_host_has_profiles_for_everybody_and_a_users_own_keep_what_it_forbids(
    files: tuple[Path, Path],
) -> None:
    own, of_host = files
    written(of_host, OF_HOST)
    assert [one.name for one in named_profiles()] == ["production", "archive"]
    written(own, 'clusters:\n  production: {bootstrap: "mine:9092"}\n  lab: {bootstrap: "lab:9092"}\n')
    found = {one.name: one for one in named_profiles()}
    assert list(found) == ["production", "lab", "archive"]
    assert found["production"].profile.bootstrap == "mine:9092"
    assert found["production"].read_only_by == of_host / "clusters.yaml"
    assert found["lab"].read_only_by is None


def test_who_is_in_none_of_the_hosts_groups_changes_no_cluster_however_it_is_named(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, call: Caller
) -> None:
    _, of_host = files
    written(of_host, OF_HOST)
    for target in (resolve("mine:9092", None, None, None), resolve(None, "archive", None, None)):
        assert target.read_only is not None and "no-group-of-this-name" in target.read_only
    through_controllers = resolve(
        None, None, None, None, bootstrap_controller="controller-1:9093", controllers=True
    )
    assert through_controllers.read_only is not None
    assert resolve(None, None, "stale-long-tail", None).read_only is None, "a simulation harms nobody"
    refused = call(
        *("ktriage", "elect", "--bootstrap-server", "mine:9092", "--election-type", "preferred"),
        *("--all-topic-partitions", "--yes", "--reason", "r"),
    )
    assert refused.status == 2 and "change-groups" in refused.err, refused
    monkeypatch.setattr("console.settings._own_groups", lambda: {"no-group-of-this-name"})
    assert why_only_read() is None and resolve("mine:9092", None, None, None).read_only is None


def test_a_hosts_file_that_cannot_be_read_lets_nobody_change_and_a_users_own_cannot_let_anybody(
    files: tuple[Path, Path],
) -> None:
    own, of_host = files
    written(of_host, "change-groups: 3\n")
    with pytest.raises(InputError, match="change-groups"):
        resolve("mine:9092", None, None, None)
    written(of_host, OF_HOST)
    written(own, "change-groups: []\nclusters: {}\n")
    with pytest.raises(InputError, match=r"change-groups is a setting of .* only"):
        named_profiles()


def test_the_command_line_goes_before_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "ktriage").mkdir()
    written(tmp_path / "ktriage", GOOD)
    target = resolve(None, "production", None, Path("mine.properties"), ("4=10.0.0.4:9092",))
    assert target.command_config == Path("mine.properties")
    assert target.addresses == {3: Address("127.0.0.1", 19093), 4: Address("10.0.0.4", 9092)}
    assert target.command("verify", "my plan.json") == (
        "ktriage verify 'my plan.json' --cluster production --command-config mine.properties"
        " --broker 4=10.0.0.4:9092"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("recover", "--all-offline-partitions", "--automated-recovery"),
        ("elect", "--election-type", "preferred", "--all-topic-partitions"),
        ("resume",),
        ("apply", "plan.json", "--yes", "--reason", "x"),
    ],
)
def test_a_read_only_profile_refuses_what_would_change_its_cluster(
    call: Caller, arguments: tuple[str, ...]
) -> None:
    settings = call.home / "config" / "ktriage"
    settings.mkdir(parents=True)
    written(settings, GOOD.replace("    command-config: /etc/kafka/client.properties\n", ""))
    (call.home / "plan.json").write_text(
        '{"partitions": [{"topic": "a", "partition": 0, "designatedLeader": 1}]}'
    )
    ended = call("ktriage", *arguments, "--cluster", "production")
    assert ended.status == 2
    assert "read-only: true" in ended.err
    assert "nothing was sent" in ended.err
