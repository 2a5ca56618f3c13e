"""The journal: what was about to be sent and how it ended, on disk before it goes out."""
