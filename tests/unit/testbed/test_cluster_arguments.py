"""``python -m testbed.kafka up --log-dirs 2``: what is asked for is what is started."""

from __future__ import annotations

import pytest

from testbed.kafka import ClusterSpec, TestbedError, __main__


def test_log_dirs_are_the_brokers_and_no_spare_controllers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Kafka is started: what the cluster would be made of is all that is looked at."""
    asked: list[ClusterSpec] = []

    def cluster(spec: ClusterSpec, **_: object) -> None:
        asked.append(spec)
        raise TestbedError("not started here")

    monkeypatch.setattr(__main__, "KafkaCluster", cluster)
    monkeypatch.setattr("sys.argv", ["testbed", "up", "--log-dirs", "2"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert __main__.main() == 1
    (spec,) = asked
    assert (spec.log_dirs, spec.spare_controllers) == (2, 0)
