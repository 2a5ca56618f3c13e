"""``ktriage disk`` on the log dirs of a dead broker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.command_process import invoke
from tests.unit.disk_scan.log_dirs import DIRECTORY, segment_name, stale_long_tail
from tests.unit.disk_scan.test_flushed_batches import three_segments


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return stale_long_tail(tmp_path / "data")


def test_a_whole_disk_is_to_be_started_again_first(tmp_path: Path, data: Path) -> None:
    ended = invoke(tmp_path, "ktriage", "disk", "scan", str(data))
    assert ended.status == 0
    assert f"node 2 of cluster 4L6g3nShT-eMCtK--X86sw, directory id {DIRECTORY}" in ended.out
    assert "0:0-1000 2:1000-1300" in ended.out
    assert (
        "Try first: run broker 2 with this disk again. Mount it here, or move it to another host" in ended.err
    )
    assert f"with node id 2 and its meta.properties as it is (directory id {DIRECTORY})" in ended.err
    said = ended.err
    assert said.index("Try first") < said.index("Compare its logs") < said.index("next: ktriage disk scan")
    assert f"next: ktriage disk scan --output json {data} > broker-2.json" in ended.err


def test_a_disk_that_lost_records_is_not_to_be_started_before_it_was_compared(
    tmp_path: Path, data: Path
) -> None:
    with (data / "orders-0" / segment_name(1000)).open("ab") as file:
        file.write(b"torn")
    ended = invoke(tmp_path, "ktriage", "disk", "scan", str(data))
    assert ended.status == 0
    assert "1 with records missing at the end" in ended.out
    assert "Do not start broker 2 with this disk before you have compared" in ended.err
    assert "Try first" not in ended.err


def test_json_is_the_scripts(tmp_path: Path, data: Path) -> None:
    told = json.loads(invoke(tmp_path, "ktriage", "disk", "scan", "--output", "json", str(data)).out)
    script = invoke(tmp_path, "ktriage", "disk", "script")
    assert script.status == 0
    piped = subprocess.run(
        [sys.executable, "-I", "-S", "-", str(data)],
        input=script.out,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert told["schema"] == "ktriage.disk-scan/1"
    assert json.loads(piped.stdout) | {"readAtMs": told["readAtMs"]} == told


def test_skipped_batches_are_told_with_the_option_that_reads_them(tmp_path: Path) -> None:
    data = str(three_segments(tmp_path / "flushed"))
    assert (
        "of flushed batches were skipped: the indexes tell their epochs (--every-batch"
        in invoke(tmp_path, "ktriage", "disk", "scan", data).out
    )
    every = invoke(tmp_path, "ktriage", "disk", "scan", "--every-batch", data)
    assert "were skipped" not in every.out
    assert f"next: ktriage disk scan --output json --every-batch {data} > broker-3.json" in every.err


def test_a_bad_dir_gets_one_line_and_status_1(tmp_path: Path, data: Path) -> None:
    ended = invoke(tmp_path, "ktriage", "disk", "scan", str(tmp_path / "nothing"), str(data))
    assert ended.status == 1
    assert f"{tmp_path}/nothing: cannot be listed: No such file or directory" in ended.err
    assert "orders-0" in ended.out


def test_where_no_dir_is_a_log_dir_nothing_is_written_by_the_scan_or_the_script(
    tmp_path: Path, data: Path
) -> None:
    (data.parent / "dbus-1").mkdir(exist_ok=True)
    told = f"{data.parent}: is no log dir: it has no meta.properties"
    for more in ((), ("--output", "json")):
        ended = invoke(tmp_path, "ktriage", "disk", "scan", str(data.parent), *more)
        assert ended.status == 2 and told in ended.err, ended
        assert told in json.loads(ended.out)["message"] if more else not ended.out
    piped = subprocess.run(
        [sys.executable, "-I", "-S", "-", str(data.parent)],
        input=invoke(tmp_path, "ktriage", "disk", "script").out,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (piped.returncode, piped.stdout) == (2, "") and told in piped.stderr, piped
