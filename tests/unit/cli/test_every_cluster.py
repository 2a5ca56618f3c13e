"""``ktriage status --all``: a row for every profile, whatever becomes of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.base.errors import Unreachable
from backends.base.protocol import Backend
from console import backends, simulator_backend
from console.target import Target, resolve
from tests.unit.cli.command_process import Caller

PROFILES = """\
clusters:
  lab: {bootstrap: "lab:9092"}
  production: {bootstrap: "production:9092"}
  gone: {bootstrap: "gone:9092"}
  moved: {bootstrap: "moved:9092", command-config: /nowhere/client.properties}
"""
SCENARIOS = {"lab": "quorum-growing-1-to-3", "production": "stale-long-tail"}


@pytest.fixture
def fleet(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """Two profiles whose clusters answer, as simulations; one that nobody reaches, and one without its file."""
    directory = tmp_path / "config" / "ktriage"
    directory.mkdir(parents=True)
    (directory / "clusters.yaml").write_text(PROFILES)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    real = backends.backend

    def opened(target: Target, say: backends.Say) -> Backend:
        name = target.arguments[1]
        if name == "moved":
            return real(target, say)
        simulated = resolve(None, None, SCENARIOS.get(name, "stale-long-tail"), None)
        found = simulator_backend.backend(simulated, say)
        if name == "gone":
            monkeypatch.setattr(found, "open", unreachable, raising=False)
        return found

    async def unreachable() -> None:
        raise Unreachable("no bootstrap server could be asked: gone:9092: connection refused")

    monkeypatch.setattr(backends, "backend", opened)
    return call


def test_every_profile_has_a_row_with_the_worst_first(fleet: Caller) -> None:
    ended = fleet("ktriage", "status", "--all", "--output", "json")
    assert ended.status == 1, ended
    document = json.loads(ended.out)
    assert document["schema"] == "ktriage.status-all/1"
    rows = {row["profile"]: row for row in document["clusters"]}
    assert next(iter(rows)) == "production" and set(rows) == {"lab", "production", "gone", "moved"}
    assert rows["production"]["offline"] == 1 and not rows["production"]["well"]
    assert rows["gone"]["offline"] is None, "nobody was asked: that is no zero"
    assert "connection refused" in rows["gone"]["problem"]
    assert "/nowhere/client.properties" in rows["moved"]["problem"]
    assert rows["lab"]["problem"] is None


def test_a_person_sees_why_a_cluster_was_not_read_and_which_to_look_at(fleet: Caller) -> None:
    ended = fleet("ktriage", "status", "--all")
    assert "4 clusters:" in ended.out and "2 not read" in ended.out
    assert "not read: no bootstrap server could be asked" in ended.out
    assert "next: ktriage status --cluster production" in ended.err


def test_all_and_one_cluster_exclude_each_other(fleet: Caller) -> None:
    ended = fleet("ktriage", "status", "--all", "--cluster", "lab")
    assert (ended.status, ended.out) == (2, "")
    assert "--all is for the clusters of all profiles" in ended.err


def test_a_host_without_profiles_says_where_they_would_be(call: Caller) -> None:
    ended = call("ktriage", "status", "--all")
    assert ended.status == 2 and "clusters.yaml: no such file" in ended.err
