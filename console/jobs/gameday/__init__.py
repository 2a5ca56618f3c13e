"""A game day: an incident that a cluster could really have, played on a copy of it, and what came of it."""
