"""A command loads what it needs, in a process of its own: start-up is most of what a small question costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.command_process import environment, invoke

SCREENS = {"textual", "pyspark", "pyarrow", "numpy"}
HEAVY = {"rich", "pydantic", "pydantic_core", "yaml", "confluent_kafka", "aiokafka", "kio", "cryptography"}


def loaded(home: Path, *arguments: str) -> set[str]:
    """The top-level packages in memory when ``ktriage ARGUMENTS…`` has ended."""
    code = (
        "import atexit, sys\n"
        "names = lambda: print('LOADED', *sorted({n.split('.')[0] for n in sys.modules}), file=sys.stderr)\n"
        "atexit.register(names)\n"
        f"sys.argv = {['ktriage', *arguments]!r}\n"
        "from console.cli.main import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (line,) = (line for line in ended.stderr.splitlines() if line.startswith("LOADED "))
    return set(line.split()[1:])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("recover", "--help"),
        ("elect", "--help"),
        ("plan", "--help"),
        ("quorum", "add", "--help"),
        ("simulate", "serve", "--help"),
        ("snapshot", "--help"),
        ("pipeline", "history", "--help"),
    ],
)
def test_help_loads_nothing_that_talks_to_a_cluster(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert loaded(tmp_path, *arguments).isdisjoint(SCREENS | HEAVY)


def test_a_question_to_a_cluster_loads_no_screen_and_no_settings(tmp_path: Path) -> None:
    found = loaded(tmp_path, "replicas", "--bootstrap-server", "127.0.0.1:9")
    assert "kio" in found or "backends" in found
    assert found.isdisjoint(SCREENS | {"rich", "pydantic", "pydantic_core", "yaml", "confluent_kafka"})


def test_the_rooms_below_the_console_load_no_screen_and_only_the_array_rules_load_arrow(
    tmp_path: Path,
) -> None:
    code = (
        "import pkgutil, importlib, sys\n"
        "import backends, recovery\n"
        "for room in (recovery, backends):\n"
        "    for found in pkgutil.walk_packages(room.__path__, room.__name__ + '.'):\n"
        "        if not found.name.startswith('recovery.arrays'):\n"
        "            importlib.import_module(found.name)\n"
        "print(*sorted({n.split('.')[0] for n in sys.modules}))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert set(ended.stdout.split()).isdisjoint(SCREENS | {"console", "widgets", "pipeline"})


def test_the_first_frame_of_the_console_needs_nothing_that_only_a_key_or_a_refresh_needs(
    tmp_path: Path,
) -> None:
    code = (
        "import sys\n"
        "import console.cli.main, console.cli.open_console, console.app.start\n"
        "rooms = ('recovery', 'backends', 'widgets', 'console')\n"
        "print(*sorted(name for name in sys.modules if name.startswith(rooms)))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = set(ended.stdout.split())
    assert "console.app.main_screen.main_screen" in found
    rooms = {name.rpartition(".")[0] for name in found}
    later = ("operations.elections", "operations.survey", "rescue", "app.controller_replacement")
    assert rooms.isdisjoint({f"console.{room}" for room in later})
    assert found.isdisjoint(
        {
            "console.app.main_screen.key_parts",
            "console.jobs.elect.planner",
            "console.app.session.cluster_refresh",
            "console.journal.journal",
            "recovery.metadata_log.history",
            "widgets.dialogs.confirmation",
            "console.jobs.elect.plan_pane",
            "console.jobs.timeline.timeline_pane",
            "widgets.eligible_pane",
            *(
                f"console.app.main_screen.{pane}_pane"
                for pane in ("brokers", "log_dirs", "quorum", "replicas")
            ),
        }
    )


def test_bare_ktriage_shows_its_help_and_every_command(tmp_path: Path) -> None:
    ended = invoke(tmp_path, "ktriage")
    assert ended.status == 0
    assert ended.err == ""
    for command in ("check", "replicas", "plan", "review", "apply", "verify", "recover", "elect", "resume"):
        assert f"\n  {command} " in ended.out


@pytest.mark.parametrize("name", ["kafka-unclean-recovery", "kafka-elect-leaders"])
def test_kafkas_names_are_commands_of_their_own(tmp_path: Path, name: str) -> None:
    ended = invoke(tmp_path, name, "--help")
    assert ended.status == 0
    assert f"Usage: {name} " in ended.out
    assert "Exit status:" in ended.out
    assert "Examples:" in ended.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_commands_options_and_profiles_without_contacting_anybody(
    tmp_path: Path, shell: str
) -> None:
    settings = tmp_path / "config" / "ktriage"
    settings.mkdir(parents=True)
    (settings / "clusters.yaml").write_text("clusters: {production: {bootstrap: '192.0.2.1:9092'}}")
    for line, expected in (
        ("ktriage re", "recover"),
        ("ktriage recover --recovery-", "--recovery-duration-ms"),
        ("ktriage recover --ranking ", "last-record"),
        ("ktriage replicas --cluster pro", "production"),
        ("ktriage quorum up", "update-endpoint"),
        ("ktriage quorum remove --cluster pro", "production"),
        ("ktriage pipeline exposure --min", "--min-isr"),
        ("ktriage snapshot --ev", "--every"),
        ("ktriage snapshot --out lake --ke", "--keep"),
        ("kafka-unclean-recovery --auto", "--automated-recovery"),
        ("kafka-elect-leaders --election-type des", "designated"),
    ):
        words = line.split(" ")
        asked = {
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        asked[f"_{words[0].upper().replace('-', '_')}_COMPLETE"] = f"complete_{shell}"
        ended = invoke(tmp_path, words[0], **asked)
        assert expected in ended.out, (line, ended)
