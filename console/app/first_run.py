"""The hint for the first start of the console on this machine."""

from __future__ import annotations

from pathlib import Path

HINT = "New here? ? shows every key, : every command by name, W what the words mean, f finds a partition."


def is_first_run(state: Path) -> bool:
    """Whether no console has been open with that state directory; from now on one has. False if that cannot be
    written down: a hint at every start helps nobody.
    """
    mark = state / "console-opened"
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600, exist_ok=False)
    except OSError:
        return False
    return True
