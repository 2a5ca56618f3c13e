"""How a rehearsal names the native calls of the recovery tool's specification.

Every simulated cluster offers them, whatever the release of its scenario; Kafka releases up to 4.3 do not.
"""

from __future__ import annotations

NATIVE_LOGS = "GetReplicaLogInfo (native), simulator only"
NATIVE_ELECTIONS = "ElectLeaders v3 (native), simulator only"
