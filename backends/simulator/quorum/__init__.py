"""The metadata quorum: voters, observers, elections, replication, changes of the voters (KIP-595, KIP-853)."""
