"""``ktriage``, killed by SIGKILL right before it sends a change.

``python -m tests.live.killed_command ACTION COMMAND …``: the journal entry of ACTION (reorder, elect, restore)
is on disk when the process dies. The kill, the journal and the cluster are real.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from console.cli import main
from console.journal.journal import Journal


def kill_before(killed_action: str) -> None:
    recorded = Journal.before

    def before(self: Journal, action: str, detail: Mapping[str, object]) -> str:
        entry = recorded(self, action, detail)
        if action == killed_action:
            os.kill(os.getpid(), signal.SIGKILL)
        return entry

    Journal.before = before  # type: ignore[method-assign]  # the only change to the product


if __name__ == "__main__":
    kill_before(sys.argv[1])
    sys.argv = ["ktriage", *sys.argv[2:]]
    main.main()
