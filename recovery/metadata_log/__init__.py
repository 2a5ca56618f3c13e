"""The cluster metadata log (KRaft, KIP-500): its records decoded, and folded into a history of states."""
