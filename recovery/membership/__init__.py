"""The voters of the metadata quorum (KIP-853): which changes of the set the leader accepts, and which are safe."""
