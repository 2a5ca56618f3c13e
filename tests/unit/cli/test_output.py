"""The two streams, tables and documents."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

from console.output.json_document import document
from console.output.screen import ProgressLine, Screen
from recovery.wording.quantity_text import counted, printable
from tests.unit.cli.command_process import command_line, environment
from widgets.fields import Field, text_field, text_rows


def test_a_table_is_aligned_and_leaves_out_what_is_empty_everywhere() -> None:
    fields: tuple[Field[tuple[str, str]], ...] = (
        text_field("PARTITION", lambda row: row[0]),
        text_field("LEADER", lambda row: row[1], right=True),
        text_field("NOTE", lambda _: ""),
    )
    assert list(text_rows(fields, [("orders-0", "1"), ("a-10", "12")])) == [
        "PARTITION  LEADER",
        "orders-0        1",
        "a-10           12",
    ]


def test_a_document_is_json_with_one_item_a_line() -> None:
    lines = list(document("replicas", {"counts": {"a": 1}, "partitions": [{"p": 0}, {"p": 1}], "none": []}))
    assert json.loads("\n".join(lines)) == {
        "schema": "ktriage.replicas/2",
        "counts": {"a": 1},
        "partitions": [{"p": 0}, {"p": 1}],
        "none": [],
    }
    assert '  {"p":0},' in lines


def test_what_a_broker_sends_does_not_move_the_cursor() -> None:
    assert printable("a\x1b[2Jb\nc") == "a [2Jb c"


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(number, "partition") for number in (0, 1, 3000)] == [
        "0 partitions",
        "1 partition",
        "3,000 partitions",
    ]


def test_progress_says_nothing_at_first_and_clears_up_after_itself() -> None:
    now = [0.0]
    stream = io.StringIO()
    line = ProgressLine(stream, lambda: now[0])
    line.show("asking brokers", 1, 10)
    assert stream.getvalue() == ""
    line.clear()
    assert stream.getvalue() == ""
    now[0] = 1.0
    line.show("asking brokers", 2, 10)
    line.show("asking brokers", 3, 10)
    assert stream.getvalue().count("asking brokers") == 1
    assert "2 of 10" in stream.getvalue()
    line.clear()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_reader_that_goes_away_ends_the_output_and_not_the_work(tmp_path: Path) -> None:
    with subprocess.Popen(
        command_line("ktriage", "recover", "--help"),
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        status = process.wait(60)
    assert (status, said) == (0, "")


def test_results_that_cannot_be_written_are_a_failure(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command_line("ktriage", "journal"),
            env=environment(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("ktriage: the results could not be written: No space left")


def test_a_closed_stdout_is_quiet() -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    err = io.StringIO()
    screen = Screen(lambda: 0.0, Gone(), err)
    # The real descriptor is pytest's own: it must stay where it is.
    before = sys.__stdout__
    screen.out(["a"])
    screen.out(["b"])
    assert screen.output_failed is None
    assert err.getvalue() == ""
    assert sys.__stdout__ is before
