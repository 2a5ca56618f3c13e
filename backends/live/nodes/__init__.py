"""The nodes of one cluster: addresses, connections, the choice of whom to ask, and checks of identity."""
