"""The calls that the recovery tool's specification adds to Kafka, as a rehearsal names them.

Every simulated cluster offers them, of whichever release its scenario is; Kafka's releases up to 4.3 do not.
"""

from __future__ import annotations

NATIVE_LOGS = "GetReplicaLogInfo (native), simulator only"
NATIVE_ELECTIONS = "ElectLeaders v3 (native), simulator only"
