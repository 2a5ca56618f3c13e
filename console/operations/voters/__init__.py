"""Changes of the metadata quorum's voters, and the guided replacement of a controller."""
