"""The quorum and the log dirs beside Java's own tools."""
