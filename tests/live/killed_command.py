"""``ktriage``, killed by SIGKILL right before it sends a change.

``python -m tests.live.killed_command ACTION COMMAND …``: the journal entry of ACTION (reorder, elect, revert)
is on disk when the process dies. The kill, the journal and the cluster are real.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from console.cli import main
from console.journal.journal import Journal


def signal_before(action_sent: str, number: signal.Signals) -> None:
    """From now on this process gets the signal right before it sends that action for the first time."""
    recorded = Journal.before
    done = False

    def before(self: Journal, action: str, detail: Mapping[str, object]) -> str:
        nonlocal done
        entry = recorded(self, action, detail)
        if action == action_sent and not done:
            done = True
            os.kill(os.getpid(), number)
        return entry

    Journal.before = before  # type: ignore[method-assign]  # the only change to the product


if __name__ == "__main__":
    signal_before(sys.argv[1], signal.SIGKILL)
    sys.argv = ["ktriage", *sys.argv[2:]]
    main.main()
