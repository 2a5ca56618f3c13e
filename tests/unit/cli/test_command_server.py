"""The server that forks the commands of the other tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.command_server import request, start_server


def test_a_command_that_has_ended_can_still_be_opened_by_its_id(tmp_path: Path) -> None:
    """As on a busy machine, where a short command ends before the test that asked for it goes on."""
    ours, server = start_server()
    with ours, ours.makefile("r") as lines:
        outputs = (tmp_path / "out", tmp_path / "err")
        for expected in (0, 2):
            words = ("--version",) if not expected else ("--no-such-option",)
            ours.sendall(request("ktriage", words, os.environ, tmp_path, outputs))
            pid, status = (json.loads(lines.readline()) for _ in range(2))
            assert status == {"status": expected}
            os.close(os.pidfd_open(pid["pid"]))
    assert server.wait() == 0
