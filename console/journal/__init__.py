"""The journal: each request is on disk before it is sent, and its result afterwards."""
