"""The metadata quorum: what is done when a majority of its controllers is gone for good."""
