"""``kafka-elect-leaders``, stopped by SIGTERM right before it sends its first election.

``python -m tests.live.stopped_command PART OPTION …``: PART rows are elected together, so that few partitions make
many parts. The signal, the journal and the cluster are real.
"""

from __future__ import annotations

import signal
import sys

from console.cli import main
from recovery.plan import election_requests
from tests.live.killed_command import signal_before

if __name__ == "__main__":
    signal_before("elect", signal.SIGTERM)
    election_requests.PART = int(sys.argv[1])
    sys.argv = ["kafka-elect-leaders", *sys.argv[2:]]
    main.kafka_elect_leaders()
