"""What happened and what changes: timeline, incident, watch, and the series of snapshots."""
